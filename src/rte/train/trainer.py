"""The loop. One for every method, on torch alone.

Nothing here depends on what happened before except through the state in `checkpoint()`: the data order, the views and
the random numbers of a step are functions of (seed, epoch, step). A run that is killed and resumed is therefore the
same run, bit for bit.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from types import FrameType
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rte.errors import ConfigError, TrainingError
from rte.methods.base import Method, Predict, Progress, Terms
from rte.rng import fold
from rte.train.config import TrainConfig
from rte.train.distributed import World
from rte.train.journal import Journal
from rte.train.muon import Muon
from rte.train.order import Slot, epoch_slots
from rte.train.sweep import outputs
from rte.views.batch import Batch
from rte.views.loader import Loader, Request

Scores = dict[str, dict[str, float]]
"""{"test": {"top1": ...}, "val": {...}, "student": {...}}"""

LOG_EVERY = 20
KEPT = ("epoch", "done", "step", "began", "extra", "opened", "seconds", "sums", "count", "history", "best_val")
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
    ) -> None:
        self.cfg, self.method, self.loader, self.n, self.seed = cfg, method, loader, n, seed
        self.device, self.examine, self.journal, self.save, self.observer = device, examine, journal, save, observer
        self.world = world or World()
        self.optimizer = _optimizer(cfg, method)
        self.epoch = self.done = self.step = 0  # epochs finished, steps done in the current one, steps done in all
        self.began = self.extra = 0.0  # what the steps before this epoch, and those until now, cost above one each
        self.opened = False  # whether the current epoch's `epoch_start` has run
        self.seconds = 0.0  # spent in training, evaluation left out
        self.sums: dict[str, float] = {}
        self.count = 0
        self.history: list[dict[str, Any]] = []
        self.best_val = -1.0
        self.broken = False
        self.open_gradient = False  # whether parts of a step's gradient have been added up already
        self.stop: str | None = None

    # ---- the loop

    def fit(self, until: int | None = None) -> None:
        """Train to the end, or to the end of epoch number `until`, or until a signal or an error."""
        saved = time.monotonic()
        with self._signals():
            while not self.finished and self.epoch < (until or self.cfg.epochs):
                for _ in self.steps():
                    if self.world.any([self.stop is not None], self.device)[0]:
                        self.save("checkpoint", self.checkpoint())
                        raise Interrupted(self.stop or "another process")
                    if time.monotonic() - saved > 60 * self.cfg.checkpoint_minutes:
                        self.save("checkpoint", self.checkpoint())
                        saved = time.monotonic()
                self._close_epoch()
                self.save("checkpoint", self.checkpoint())
                saved = time.monotonic()

    @property
    def finished(self) -> bool:
        """Whether all epochs, or all steps if those are fewer, are done, and the last epoch is closed."""
        no_step_left = self.cfg.steps is not None and self.step + self.extra >= self.cfg.steps
        return self.epoch >= self.cfg.epochs or (no_step_left and self.done == 0)

    def steps(self) -> Iterator[None]:
        """The steps of the current epoch that are still to be done."""
        method, started = self.method, time.perf_counter()
        method.train()
        first = self.step - self.done
        start = Progress(self.epoch, self.cfg.epochs, step=first, steps=self.cfg.steps, extra=self.began)
        if not self.opened:
            torch.manual_seed(fold(self.seed, "epoch", self.epoch) >> 1)
            report = method.epoch_start(start, self._sweep)
            self.opened = True
            if report:
                self.journal.write("epoch_start", epoch=self.epoch, step=self.step, **_floats(report))
        slots = epoch_slots(method.passes(start), n=self.n, batch=self.cfg.batch, seed=self.seed, epoch=self.epoch)
        requests = ((t, part) for t in self._moments(slots) for part in self._parts(slots[t.j]))
        batches = self.loader.batches(self._request(t, part) for t, part in requests)
        for t in self._moments(slots):
            self._set_rates(t)
            torch.manual_seed(fold(self.seed, "step", t.step, self.world.rank) >> 1)
            terms = self._step(t, self._parts(slots[t.j]), len(slots[t.j].index), batches)
            self._agree(method)
            method.after_step(t)
            self.done, self.step, self.extra = self.done + 1, self.step + 1, t.extra + method.price(t) - 1.0
            self.seconds += time.perf_counter() - started
            self._log(t, terms)
            yield
            started = time.perf_counter()

    def _step(self, t: Progress, parts: list[Slot], size: int, batches: Iterator[Batch]) -> dict[str, float]:
        """One optimiser step on a batch of `size` examples, of which `parts` are this process's, one after another."""
        total: dict[str, float] = {}
        resolution = self.cfg.resolution.at(self.method.moment(t))
        for number, part in enumerate(parts, 1):
            share = len(part.index) / size
            update = partial(self._update, scale=share * self.world.size, last=number == len(parts))
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.cfg.precision == "bf16"):
                batch = next(batches).to(self.device).shrunk(resolution)
                terms = self.method.step(batch, t, update)
            self._refuse_non_finite(t, terms)
            for name, value in _floats(terms).items():
                total[name] = total.get(name, 0.0) + value / len(parts)
            for table in self.method.tables:
                self.world.gather_rows(attrgetter(table)(self.method), torch.from_numpy(part.index).to(self.device))
        return total

    def _parts(self, slot: Slot) -> list[Slot]:
        """This process's share of a step, cut into `train.accumulate` pieces."""
        smallest = min(len(stream) for stream in (slot.index, slot.second) if stream is not None)
        if smallest < self.world.size:
            raise ConfigError(
                f"{self.world.size} processes cannot share a batch of {smallest}; start fewer, or raise its size."
            )
        pieces = min(self.cfg.accumulate, smallest // self.world.size)

        def cut(index: NDArray[np.int64]) -> list[NDArray[np.int64]]:
            return np.array_split(self.world.share(index), pieces)

        second = [None] * pieces if slot.second is None else cut(slot.second)
        return [Slot(slot.part, a, b) for a, b in zip(cut(slot.index), second, strict=True)]

    def _agree(self, method: Method) -> None:
        """Running means, as those of batch norm, are each process's own until they are averaged."""
        if self.world.size > 1:
            means = (b for module in method.running() for b in module.buffers())
            self.world.average(b for b in means if b.is_floating_point())

    def _moments(self, slots: list[Slot]) -> Iterator[Progress]:
        first, extra, steps = self.step - self.done, self.extra, self.cfg.steps
        for j in range(self.done, len(slots)):
            if steps is not None and first + j + extra >= steps:
                return
            t = Progress(self.epoch, self.cfg.epochs, j, len(slots), first + j, slots[j].part, steps, extra)
            yield t
            extra += self.method.price(t) - 1.0

    def _request(self, t: Progress, slot: Slot) -> Request:
        plan = self.method.views(t)
        second = None
        if slot.second is not None:
            # an example may come again in the same epoch: its views are drawn afresh for each step
            second = Request(t.epoch, slot.second, plan.second or plan, stream=2 * t.j + 1)
        return Request(t.epoch, slot.index, plan, stream=2 * slot.part, second=second)

    def _close_epoch(self) -> None:
        self.epoch, self.done, self.opened, self.began = self.epoch + 1, 0, False, self.extra
        self._flush_log()
        if self.epoch % self.cfg.evaluate_every and not self.finished:
            return
        scores = self.examine(self.method) if self.world.first else {}
        self.history.append({"epoch": self.epoch, **scores})
        self.journal.write("epoch", epoch=self.epoch, step=self.step, seconds=self.seconds, **scores)
        if "val" in scores and scores["val"]["top1"] > self.best_val:
            self.best_val = scores["val"]["top1"]
            self.save("selected", {"epoch": self.epoch, "method": self.method.state_dict()})
        if self.observer:
            self.observer.epoch(self.epoch, scores)

    # ---- what a step needs

    def _sweep(self, predict: Predict, *, reported: bool = False) -> Tensor:
        batch, mirror = self.cfg.evaluate_batch, reported and self.loader.engine.cfg.mirror
        logits = outputs(self.method, predict, self.loader, batch=batch, device=self.device, mirror=mirror)
        return logits.to(self.device)

    def _set_rates(self, t: Progress) -> None:
        moment = self.method.moment(t)
        lr, weight_decay = self.cfg.lr.at(moment) * self.method.pace(t), self.cfg.weight_decay.at(moment)
        for group in self.optimizer.param_groups:
            group["lr"], group["weight_decay"] = lr, weight_decay

    def _update(self, loss: Tensor, more: bool = False, *, scale: float, last: bool) -> None:
        """`Update`: add the gradient of `scale` * loss and, unless more is to come, make the optimiser's step."""
        self.broken = self.world.any([self.broken or not bool(torch.isfinite(loss))], self.device)[0]
        if self.broken:
            return
        if not self.open_gradient:
            self.optimizer.zero_grad(set_to_none=True)
        (loss * scale if scale != 1 else loss).backward()  # type: ignore[no-untyped-call]
        self.open_gradient = more or not last
        if self.open_gradient:
            return
        self.world.average(p.grad for p in self.method.parameters() if p.grad is not None)
        if self.cfg.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.method.parameters(), self.cfg.clip)
        self.optimizer.step()

    def _refuse_non_finite(self, t: Progress, terms: Terms) -> None:
        if not self.broken:
            return
        values = _floats(terms)
        names = [name for name in values if name != "loss"] + ["loss"]
        bad = next(name for name in names if not abs(values.get(name, float("nan"))) < float("inf"))
        raise TrainingError(
            f"step {t.step} of epoch {t.epoch}: the term '{bad}' is {values.get(bad)}; lower train.lr or set "
            "train.clip=1, then start again (the checkpoint before this step is intact)."
        )

    # ---- records

    def _log(self, t: Progress, terms: dict[str, float]) -> None:
        values = {**terms, "lr": float(self.optimizer.param_groups[0]["lr"])}
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.count += 1
        if self.observer:
            self.observer.step(t, values)
        if self.step % LOG_EVERY == 0:
            self._flush_log()

    def _flush_log(self) -> None:
        if self.count:
            sums = torch.tensor(list(self.sums.values()), dtype=torch.float64, device=self.device)
            self.world.average([sums])
            means = dict(zip(self.sums, (sums / self.count).tolist(), strict=True))
            self.journal.write("step", epoch=self.epoch, step=self.step, seconds=self.seconds, **means)
        self.sums, self.count = {}, 0

    def checkpoint(self) -> dict[str, Any]:
        """Everything a later process needs to go on exactly here."""
        return {
            **{name: getattr(self, name) for name in KEPT},
            "journal": self.journal.position,
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.method.load_state_dict(state["method"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in KEPT:
            setattr(self, name, state[name])
        self.journal.rewind(state["journal"])

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Within, the first SIGINT or SIGTERM asks for a stop after the current step; a second one acts as usual."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            self.stop = signal.Signals(number).name
            signal.signal(number, old[number])

        old: dict[int, Any] = {n: signal.signal(n, ask) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


def _optimizer(cfg: TrainConfig, method: Method) -> torch.optim.Optimizer:
    parameters = [p for p in method.parameters() if p.requires_grad]
    if cfg.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=1.0, betas=(cfg.momentum, 0.999))
    if cfg.optimizer == "muon":
        return Muon(parameters, lr=1.0, momentum=cfg.momentum)
    return torch.optim.SGD(parameters, lr=1.0, momentum=cfg.momentum, nesterov=cfg.nesterov)


def _floats(terms: Terms) -> dict[str, float]:
    return {name: float(value.detach() if isinstance(value, Tensor) else value) for name, value in terms.items()}
