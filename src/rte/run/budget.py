"""A run that fits into a given time: measure the speed for a few seconds, then set its length.

The outcome is an ordinary number of steps in the resolved settings. A run with a budget is therefore as reproducible as
any other: the measurement decides how long it is, and nothing else.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from itertools import islice
from statistics import mean, median
from typing import TypeAlias

from rte import nets
from rte.config import RunConfig
from rte.errors import ConfigError
from rte.methods.base import Progress
from rte.methods.rte import RobustTemporalEnsembling
from rte.parts.schedules import constant
from rte.parts.selftune import NoiseEstimate, signal
from rte.run.build import Prepared, make_trainer
from rte.train.distributed import World
from rte.train.trainer import Trainer

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
LEAST = 20
"""Fewer steps than this are no training."""
SHARE = 0.97
"""The part of the budget that is planned; the rest is for checkpoints and the unforeseen."""
LONG = 1_000_000
"""Steps of the pretended run whose moments are timed."""
FRACTIONS = tuple((i + 0.5) / 100 for i in range(100))
"""Moments of the run at which the number of views and their resolution are looked up."""
Kind: TypeAlias = tuple[int, float]
"""What the cost of a step depends on: the number of views, and their resolution to a tenth."""
PER_IMAGE = 25
"""Parameters for each training image that a wider network may have where labels are right; see `capacity`."""
PILOT, PASSES = 400, 10
"""Steps, and at most epochs, of a run on trial that estimates the noise, where the network to take depends on it."""
TRIAL = {"optimizer": "muon", "momentum": 0.9, "lr": constant(0.06), "weight_decay": constant(5e-4)}
"""Its settings, the same whatever is to be trained, so that the same network is found."""
WARM, TIMED = 2, 4


def parse_budget(text: str) -> float:
    """Seconds from "90s", "30m", "1.5h" or "1h30m"; a plain number counts seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", text.strip().lower())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip().lower():
        raise ConfigError(f"--budget {text} is no time; write it as 90s, 30m or 2h.")
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if not seconds > 0:
        raise ConfigError(f"--budget {text} leaves no time; give at least some seconds.")
    return seconds


def fit_budget(prepared: Prepared, seconds: float, *, started: float | None = None) -> RunConfig:
    """The settings of the run with its length set such that it ends `seconds` after `started` (a monotonic time).

    Schedules stretch with the length. Where there is time for so many passes over the data that a wider network of
    `net.wider` pays, it is taken, unless labels are too noisy for it. Every process of a torchrun comes to the same
    answer.
    """
    started = time.monotonic() if started is None else started
    world = World.join()
    meter = metered(prepared, world)

    def left() -> float:
        return SHARE * (seconds - world.mean(time.monotonic() - started))

    name = suitable(prepared, lambda name: meter(name).epochs(left()), world)
    chosen = meter(name)
    for _ in range(2):  # first what the length depends on is timed, which takes time itself
        steps = most(chosen.seconds, left())
    if steps < LEAST:
        raise ConfigError(
            f"a budget of {seconds:.0f} s is enough for {steps} steps of {chosen.step(LEAST):.2g} s after the set-up, "
            "which is no training; give more time, or a smaller network (--net compact-16)."
        )
    return prepared.config.with_net(name).with_train(steps=steps, epochs=math.ceil(steps / chosen.per_epoch))


def metered(prepared: Prepared, world: World | None = None) -> Callable[[str], Meter]:
    """For each network that is asked for, what the run costs with it."""

    @cache
    def meter(name: str) -> Meter:
        other = replace(prepared, config=prepared.config.with_net(name))
        return Meter(make_trainer(other, save=lambda name, state: None, world=world)[0])

    return meter


def suitable(prepared: Prepared, epochs: Callable[[str], float], world: World | None = None) -> str:
    """The network to take: the widest for the time, in which each of them would have so many epochs, and the noise.

    Only where the noise makes a difference is it found out.
    """
    classes, epochs = len(prepared.spec.classes), cache(epochs)
    names = {widest(prepared, epochs, capacity(noise, classes)) for noise in (1.0, 0.0)}
    if len(names) == 1:
        return names.pop()
    return widest(prepared, epochs, capacity(piloted(prepared, world), classes))


def capacity(wrong: float, classes: int) -> float:
    """How many parameters a network may have for each image where that share of labels is wrong.

    With more it soon knows labels by heart, and the less there is to learn besides, the sooner. The root is a guess
    that lies between the measured cases (docs/laptop.md).
    """
    return PER_IMAGE * math.sqrt(signal(wrong, classes))


def piloted(prepared: Prepared, world: World | None = None) -> float:
    """The share of wrong labels, as far as the first steps of RTE's task loss with the network that is set tell it."""
    method = RobustTemporalEnsembling.Config(auto=True, q=constant(0.7), jsd_weight=constant(0), ecr_weight=constant(0))
    config = replace(prepared.config, method_name="rte", method=method).with_train(steps=LONG, epochs=LONG, **TRIAL)
    trainer, _ = make_trainer(replace(prepared, config=config), save=lambda name, state: None, world=world)
    while trainer.epoch < PASSES and (left := PILOT - trainer.step) > 0:
        for _ in islice(trainer.steps(), left):
            pass
        trainer.epoch, trainer.done, trainer.opened = trainer.epoch + 1, 0, False
    noise = trainer.method.noise
    assert isinstance(noise, NoiseEstimate)
    return noise.share


def widest(prepared: Prepared, epochs: Callable[[str], float], per_image: float) -> str:
    """The last of `net.wider` with enough epochs and at most so many parameters for each image; else the one set.

    Networks are asked for their epochs from the narrowest on, up to the first for which there is no time.
    """
    net, spec, found = prepared.config.net, prepared.spec, prepared.config.net.name
    for name in net.wider:
        made = nets.build(name, channels=spec.channels, classes=len(spec.classes), size=spec.size, dropout=0.0)
        if nets.parameters(made) > per_image * len(prepared.train_rows) or epochs(name) < net.wider_epochs:
            break
        found = name
    return found


def most(cost: Callable[[int], float], seconds: float) -> int:
    """The most steps that cost no more than that; `cost` must rise with the steps."""
    low, high = 0, LEAST
    while cost(high) <= seconds:
        low, high = high, 2 * high
    while high - low > 1:  # low is affordable, high is not
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= seconds else (low, middle)
    return low


class Meter:
    """What a run costs, from the times of its steps on a trainer that is thrown away afterwards.

    Each kind of step is timed when a run is first asked for that has such steps: a schedule that goes by epochs may
    add views in long runs only. Processes average each time before they use it, so that they ask for the same ones.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.per_epoch = trainer, max(1, trainer.n // trainer.cfg.batch)
        self._set_length(self.per_epoch)
        next(trainer.steps())  # compiles what is compiled on first use
        self._times: dict[Kind, tuple[float, float]] = {}

    @cached_property
    def evaluation(self) -> float:
        """Seconds of an evaluation."""
        world, began = self.trainer.world, time.perf_counter()
        if world.first:
            self.trainer.examine(self.trainer.method)
        return world.mean(time.perf_counter() - began) * world.size

    def epochs(self, seconds: float) -> float:
        """Of a run that has so much time for its steps."""
        return most(lambda steps: steps * self.step(steps), seconds) / self.per_epoch

    def forget(self) -> None:
        """Time every kind of step anew when it is asked for again."""
        self._times.clear()

    def seconds(self, steps: int) -> float:
        """Of a run of so many steps, with the epochs it begins and the evaluations it causes."""
        step, epochs = self.step(steps), self.trainer.cfg.epochs
        begin = min(begin for begin, _ in self._times.values())
        evaluations = math.ceil(epochs / self.trainer.cfg.evaluate_every)
        return steps * step + epochs * begin + evaluations * self.evaluation

    def step(self, steps: int) -> float:
        """Seconds of a step, averaged over a run of so many."""
        self._set_length(steps)
        return mean(self._time(steps, fraction)[1] for fraction in FRACTIONS)

    def _set_length(self, steps: int) -> None:
        epochs = max(1, math.ceil(steps / self.per_epoch))
        self.trainer.cfg = self.trainer.cfg.model_copy(update={"steps": LONG, "epochs": epochs})

    def _time(self, steps: int, fraction: float) -> tuple[float, float]:
        """Seconds of the beginning of an epoch and of a step, after that part of a run of so many steps."""
        trainer, epoch = self.trainer, int(fraction * steps / self.per_epoch)
        t = Progress(epoch, trainer.cfg.epochs, step=int(fraction * LONG), steps=LONG)
        kind = trainer.method.views(t).total, round(trainer.cfg.resolution.at(trainer.method.moment(t)), 1)
        if kind not in self._times:
            trainer.epoch, trainer.step, trainer.done, trainer.opened = epoch, t.step, 0, False
            trainer.began = trainer.extra = 0.0
            first, step = _timed(trainer)
            self._times[kind] = trainer.world.mean(max(0.0, first - step)), trainer.world.mean(step)
        return self._times[kind]


def _timed(trainer: Trainer) -> tuple[float, float]:
    """Seconds of the first step of an epoch, and of a usual one."""
    times = []
    began = time.perf_counter()
    for _ in islice(trainer.steps(), 1 + WARM + TIMED):
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
    return times[0], median(times[1 + WARM :] or times)
