"""The loop. One for every method, on torch alone.

Nothing here depends on what happened before except through the state in `checkpoint()`: data order, views and random
numbers of a step are functions of (seed, epoch, step). A run killed and resumed is therefore the same, bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

import torch
from torch import Tensor

from rte.errors import ConfigError, TrainingError
from rte.methods.base import Method, Predict, Progress, Terms
from rte.parts.schedules import Moment
from rte.rng import fold
from rte.train.config import TrainConfig
from rte.train.device import seed
from rte.train.distributed import World
from rte.train.interrupts import stop_signals
from rte.train.journal import Journal
from rte.train.lockstep import together
from rte.train.margins import Margins
from rte.train.optimizer import Optimizer
from rte.train.order import Slot, epoch_slots
from rte.train.sweep import outputs
from rte.train.timeline import BySteps, Place, Timeline
from rte.views.batch import Batch
from rte.views.loader import Loader, Request

Scores = dict[str, dict[str, float]]
"""{"test": {"top1": ...}, "val": {...}, "student": {...}}"""

LOG_EVERY = 20
KEPT = ("epoch", "done", "step", "opened", "seconds", "sums", "count", "history", "best_val")
"""Of a trainer, what goes into a checkpoint as it is."""


class Interrupted(Exception):
    """The run was asked to stop, and has saved its state."""


class Observer(Protocol):
    """Somebody who watches: a progress bar."""

    def step(self, t: Progress, terms: dict[str, float]) -> None: ...

    def epoch(self, epoch: int, scores: Scores) -> None: ...


class Trainer:
    """Trains a method; `save` is called with a name ("checkpoint", "selected") and the state to keep under it."""

    def __init__(
        self,
        cfg: TrainConfig,
        method: Method,
        loader: Loader,
        *,
        n: int,
        seed: int,
        device: torch.device,
        examine: Callable[[Method], Scores],
        journal: Journal,
        save: Callable[[str, dict[str, Any]], None],
        observer: Observer | None = None,
        world: World | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.cfg, self.method, self.loader, self.n, self.seed = cfg, method, loader, n, seed
        self.device, self.examine, self.journal, self.save, self.observer = device, examine, journal, save, observer
        self.world = world or World()
        self.timeline = timeline or BySteps(cfg.epochs, cfg.steps, cfg.evaluate_every)
        self.optimizer = Optimizer(cfg, method, self.world)
        self.margins = Margins(method, n, method.classes, device)
        self.epoch = self.done = self.step = 0  # epochs finished, steps done in the current one, steps done in all
        self.opened = False  # whether the current epoch's `epoch_start` has run
        self.seconds = 0.0  # spent in training, evaluation left out
        self.sums: dict[str, Any] = {}
        self.count = 0
        self.history: list[dict[str, Any]] = []
        self.best_val = -1.0
        self.stop: str | None = None
        self._J = max(1, n // cfg.batch)  # steps of an epoch, as far as they are known
        self._paused: float | None = None

    # ---- the loop

    def fit(self, until: int | None = None) -> None:
        """Train to the end, or to the end of epoch number `until`, or until a signal or an error."""
        saved = time.monotonic()
        with stop_signals(self._ask):
            while not self.finished and (until is None or self.epoch < until):
                for _ in self.steps():
                    if not self._looks_up:
                        continue
                    due = time.monotonic() - saved > 60 * self.cfg.checkpoint_minutes
                    stop, due = self.world.any([self.stop is not None, due])
                    if stop or due:
                        self._save()
                        saved = time.monotonic()
                    if stop:
                        raise Interrupted(self.stop or "another process")
                self._close_epoch()
                self._save()
                saved = time.monotonic()

    @property
    def finished(self) -> bool:
        """Whether no step is left, and the last epoch is closed."""
        return self.done == 0 and self.timeline.over(Place(self.epoch, 0, self._J, self.step))

    @property
    def _looks_up(self) -> bool:
        """Whether now is a moment at which processes exchange a word, and the device is waited for."""
        return self.device.type == "cpu" or self.step % LOG_EVERY == 0

    def steps(self) -> Iterator[None]:
        """The steps of the current epoch that are still to be done."""
        method, started = self.method, time.perf_counter()
        method.train()
        start = self._progress(Place(self.epoch, 0, self._J, self.step - self.done))
        if not self.opened:
            seed(self.device, fold(self.seed, "epoch", self.epoch))
            self._decide("epoch_start", start)
            self.optimizer.restart(method.restarted(start))
            self.opened = True
        slots = epoch_slots(method.passes(start), n=self.n, batch=self.cfg.batch, seed=self.seed, epoch=self.epoch)
        self._J = max(1, len(slots))
        requests = ((t, piece) for t in self._moments(slots) for piece in self._pieces(slots[t.j]))
        batches = self.loader.batches(self._request(t, piece) for t, piece in requests)
        if self._paused is not None:
            self.timeline.paused(time.perf_counter() - self._paused)
        began = time.perf_counter()
        for t in self._moments(slots):
            clock = method.clock(t)
            t = replace(t, lr=self.optimizer.set_rates(clock))
            seed(self.device, fold(self.seed, "step", t.step, self.world.rank))
            terms = self._step(t, self._pieces(slots[t.j]), len(slots[t.j].index), batches, clock.moment)
            self._agree(method)
            method.after_step(t)
            self.done, self.step = self.done + 1, self.step + 1
            self.timeline.stepped(time.perf_counter() - began)
            self.seconds += time.perf_counter() - started
            self._log(t, terms)
            yield
            started = began = time.perf_counter()
        self._paused = time.perf_counter()

    def _step(
        self, t: Progress, pieces: list[Slot], size: int, batches: Iterator[Batch], moment: Moment
    ) -> dict[str, Any]:
        """One step on a batch of `size` examples, of which `pieces` are this process's."""
        resolution, half = self.cfg.resolution.at(moment), self.cfg.precision == "bf16"

        def run(number: int, meet: Callable[[], None]) -> Terms:
            scale = len(pieces[number].index) / size * self.world.size

            def update(loss: Tensor) -> None:
                self.optimizer.update(loss, scale, first=number == 0, last=number == len(pieces) - 1)
                meet()

            batch = next(batches).to(self.device).shrunk(resolution)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=half), self.margins.watching(batch, t):
                return self.method.step(batch, t, update)

        all_terms = together([partial(run, number) for number in range(len(pieces))])
        total: dict[str, Any] = {}
        for terms in all_terms:
            for name, value in terms.items():
                value = value.detach() if isinstance(value, Tensor) else value
                value = float(value) if self.device.type == "cpu" or not isinstance(value, Tensor) else value.float()
                total[name] = total.get(name, 0.0) + value / len(pieces)
        if self._looks_up and self.optimizer.broken:
            self._refuse(t, total)
        for table in self.method.tables:
            for piece in pieces:
                self.world.gather_rows(attrgetter(table)(self.method), torch.from_numpy(piece.index).to(self.device))
        self.margins.gather(self.world, pieces)
        return total

    def _pieces(self, slot: Slot) -> list[Slot]:
        """This process's share of a step, cut into `train.accumulate` pieces."""
        smallest = min(len(stream) for stream in (slot.index, slot.second) if stream is not None)
        if smallest < self.world.size:
            raise ConfigError(
                f"{self.world.size} processes cannot share a batch of {smallest}; start fewer, or raise its size."
            )
        return slot.cut(self.world.rank, self.world.size, min(self.cfg.accumulate, smallest // self.world.size))

    def _agree(self, method: Method) -> None:
        """Running means, as those of batch norm, are each process's own until they are averaged."""
        if self.world.size > 1:
            means = (b for module in method.running() for b in module.buffers())
            self.world.average(b for b in means if b.is_floating_point())

    def _progress(self, place: Place, pass_number: int = 0) -> Progress:
        epochs, done = self.timeline.where(place)
        return Progress(place.epoch, epochs, place.j, place.J, place.step, pass_number, done)

    def _moments(self, slots: list[Slot]) -> Iterator[Progress]:
        first = self.step - self.done
        for j in range(self.done, len(slots)):
            place = Place(self.epoch, j, len(slots), first + j)
            if self.timeline.over(place):
                return
            yield self._progress(place, slots[j].pass_number)

    def _request(self, t: Progress, slot: Slot) -> Request:
        plan = self.method.views(t)
        second = None
        if slot.second is not None:
            # an example may come again in the same epoch: its views are drawn afresh for each step
            own = plan.second or plan
            second = Request(t.epoch, slot.second, own, stream=2 * t.j + 1, again=slot.second_again)
        return Request(t.epoch, slot.index, plan, stream=2 * slot.pass_number, second=second, again=slot.again)

    def _decide(self, name: str, t: Progress) -> None:
        """Let the method's `epoch_start` or `epoch_end` decide in the first process, and tell the others."""
        if getattr(type(self.method), name) is getattr(Method, name):
            return
        report = getattr(self.method, name)(t, self._sweep) if self.world.first else {}
        self.margins.give(self.world, self.method)
        if report:
            self.journal.write(name, epoch=t.epoch, step=self.step, **_floats(report))

    def _close_epoch(self) -> None:
        self._check_weights()
        self._flush_log()
        last = self.epoch
        self.epoch, self.done, self.opened = self.epoch + 1, 0, False
        if not self.finished and not self.timeline.evaluates(self.epoch):
            return
        t = self._progress(Place(last, self._J, self._J, self.step))
        self._decide("epoch_end", t)
        began = time.perf_counter()
        if self.cfg.budget is None:
            self.margins.look(t, self.world, partial(self._sweep, self.method.predict))
        scores = self.examine(self.method) if self.world.first else {}
        self.timeline.evaluated(time.perf_counter() - began)
        if self._paused is not None:
            self._paused += time.perf_counter() - began
        self.history.append({"epoch": self.epoch, **scores})
        self.journal.write("epoch", epoch=self.epoch, step=self.step, seconds=self.seconds, **scores)
        if "val" in scores and scores["val"]["top1"] > self.best_val:
            self.best_val = scores["val"]["top1"]
            self.save("selected", {"epoch": self.epoch, "method": self.method.state_dict()})
        if self.observer:
            self.observer.epoch(self.epoch, scores)

    def _sweep(self, predict: Predict, *, reported: bool = False) -> Tensor:
        size, now = self.cfg.evaluate_batch, self._progress(Place(self.epoch, self.done, self._J, self.step))
        found = outputs(self.method, predict, self.loader, batch=size, device=self.device, mirror=reported)
        return self.margins.swept(found.to(self.device), self.method.y, now)

    # ---- records

    def _refuse(self, t: Progress, terms: dict[str, Any]) -> None:
        """End the run in all processes, with the same sentence, whichever of them has the bad numbers."""
        names = sorted(terms, key=lambda name: name == "loss")
        bad = (f"the term '{name}' is {value}" for name in names if not math.isfinite(value := float(terms[name])))
        what = self.world.first_word(next(bad, "")) or "a gradient is not finite"
        raise TrainingError(
            f"step {t.step} of epoch {t.epoch}: {what}; lower train.lr or set train.clip=1, then start again "
            "(the checkpoint before this step is intact)."
        )

    def _log(self, t: Progress, terms: dict[str, Any]) -> None:
        values = {**terms, "lr": self.optimizer.lr}
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.count += 1
        if self.observer:
            self.observer.step(t, {k: v for k, v in values.items() if self._looks_up or not isinstance(v, Tensor)})
        if self.step % LOG_EVERY == 0:
            self._flush_log()

    def _flush_log(self) -> None:
        if self.count:
            sums = torch.tensor([float(value) for value in self.sums.values()], dtype=torch.float64)
            self.world.average([sums])
            means = dict(zip(self.sums, (sums / self.count).tolist(), strict=True))
            self.journal.write("step", epoch=self.epoch, step=self.step, seconds=self.seconds, **means)
        self.sums, self.count = {}, 0

    def _check_weights(self) -> None:
        """Refuse to go on from, to evaluate or to save weights that are no numbers."""
        broken = self.optimizer.broken or not all(bool(p.isfinite().all()) for p in self.method.parameters())
        if self.world.any([broken])[0]:
            self._refuse(Progress(self.epoch, self.epoch + 1, step=self.step), {})

    def _save(self) -> None:
        """Keep the state, unless it is no longer one to go on from."""
        self._check_weights()
        self.journal.sync()
        self.save("checkpoint", self.checkpoint())

    def checkpoint(self) -> dict[str, Any]:
        """Everything a later process needs to go on exactly here."""
        self.sums = {name: float(value) for name, value in self.sums.items()}
        return {
            **{name: getattr(self, name) for name in KEPT},
            "journal": self.journal.position,
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.torch.state_dict(),
            "margins": self.margins.table,
        }

    def _ask(self, signal_name: str) -> None:
        self.stop = signal_name

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.method.load_state_dict(state["method"])
        self.optimizer.torch.load_state_dict(state["optimizer"])
        if "margins" in state:  # runs of an earlier version have none
            self.margins.table.copy_(state["margins"])
        for name in KEPT:
            setattr(self, name, state[name])
        self.timeline.begin(self.step)
        self.journal.rewind(state["journal"])


def _floats(terms: Terms) -> dict[str, float]:
    return {name: float(value.detach() if isinstance(value, Tensor) else value) for name, value in terms.items()}
