"""A run of a given time: the clock is its schedule, and its end is kept, evaluation and all.

Nothing is timed beforehand. What follows the last step is foreseen from one predicted batch, later from the evaluations
that were made.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rte import nets
from rte.config import RunConfig
from rte.errors import ConfigError
from rte.evaluate.examiner import Examiner
from rte.files import write_atomic
from rte.methods.base import Method, Progress
from rte.recipes.policy import ASSUMED, signal
from rte.run.build import Prepared
from rte.run.inputs import FeatureSpec
from rte.train.config import TrainConfig
from rte.train.device import convolution_speed
from rte.train.distributed import World
from rte.train.pace import ByClock, Course
from rte.train.trainer import Trainer

FILE = "clock.jsonl"
"""In a run folder: the path that a run by the clock has taken."""
FIXED = 0.25
"""Share of a step's cost that does not shrink with the images: at 20 of 32 pixels a step costs 0.55 of a full one."""
WRITING = 0.5
"""Seconds for the last checkpoint and the results."""
PAGE = 2.0
"""Seconds for the tables of an audit, and for the page with its pictures."""
YEAR = 365 * 24 * 3600
NEAR = (3.0, 1.5)
"""How many times as much time as that is left when it is foreseen anew."""
ROOM = 1.05
"""What is foreseen is taken to last this much longer."""
AUDITING = 0.1
"""Share of the time that an audit at the end may take; a longer one is left to `rte report`, which has its own time."""
CHANGED = 1.25
"""It is foreseen anew when steps take this many times as long as then, or as short."""
SELDOM = 20.0
"""But not before so many times the seconds of the last look have passed."""
EFFICIENCY = 0.5
"""FLOP/s that a small network reaches in training, against a single wide convolution."""
PER_IMAGE = 25
"""Parameters for each training image that a wider network may have where labels are right: wider ones memorise them."""


HEAD = 1e-4
"""Seconds that an epoch of a linear layer takes for each example, at most: 1.2e-5 to 5e-5 were measured."""

ANYWAY = 10.0
"""Seconds that a head may take beyond a budget which its features have used up."""


def parse_budget(text: str) -> float:
    """Seconds from "90s", "30m", "1.5h", "1h30m" or "1h30", an hour and a half; a plain number counts seconds."""
    given = text.strip().lower()
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}(s?))?", given)
    if not given or match is None:
        raise ConfigError(f"--budget {text} is no time; write it as 90s, 30m, 2h or 1h30m.")
    hours, minutes, rest, unit = match.groups()
    scale = 60.0 if hours and not minutes and not unit else 1.0
    seconds = 3600 * float(hours or 0) + 60 * float(minutes or 0) + scale * float(rest or 0)
    if not seconds:
        raise ConfigError(f"--budget {text} leaves no time; give at least some seconds.")
    if seconds > YEAR:
        raise ConfigError(f"--budget {text} is longer than a year; write it as 90s, 30m, 2h or 1h30m.")
    return seconds


class Closing:
    """The seconds that all after the last step will take: evaluation, a look at the training labels, and writing;
    and, of an `audited` run, its audit and its page, as long as these are not found to take more than `most` seconds.

    Foreseen by some predictions after the first steps, or by the last evaluation; and by some more where the time of a
    step says that the machine has become slower or faster, and when the end comes near.
    """

    def __init__(
        self,
        method: Method,
        examiner: Examiner,
        *,
        audited: bool = False,
        most: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.method, self.examiner, self.audited, self.most, self.clock = method, examiner, audited, most, clock
        self.networks = len(method.networks())
        self.per_look = 0.0  # seconds of a prediction
        self.step = 0.0  # seconds of a step when that was measured
        self.again = 0.0  # when it may be measured anew
        self.near = list(NEAR)

    def __call__(self, left: float, step: float) -> float:
        """Where so much time is left in all, and a step takes so many seconds."""
        near = bool(self.near) and left < self.near[0] * self._looks() * self.per_look
        if near:
            self.near.pop(0)
        if near or not self.per_look or self._changed(step):
            began = self.clock()
            self.per_look, self.step = self.examiner.glance(self.method), step
            self.again = self.clock() + SELDOM * (self.clock() - began)
        self.step = self.step or step
        if self.audited:
            audited = self._seconds()
            self.audited = False
            self.audited = audited - self._seconds() <= self.most
        return self._seconds()

    def _looks(self) -> int:
        return self.examiner.looks(self.networks, final=True, audited=self.audited)

    def _seconds(self) -> float:
        return WRITING + (PAGE if self.audited else 0.0) + ROOM * self.per_look * self._looks()

    def evaluated(self, seconds: float) -> None:
        """An evaluation took so long."""
        looks = self.examiner.looks(self.networks, final=False)
        if looks and seconds > 0:
            self.per_look, self.step = seconds / looks, 0.0

    def _changed(self, step: float) -> bool:
        usual = self.step or step
        return step > 0 and self.clock() >= self.again and not usual <= CHANGED * step <= CHANGED**2 * usual


def by_clock(
    trainer: Trainer,
    examiner: Examiner,
    seconds: float,
    started: float,
    file: Path | None,
    *,
    audited: bool = False,
) -> ByClock:
    """The timeline of a run that ends so many seconds after `started`; what `file` says of its path is followed.

    `audited`: an audit and a page belong to the end, too, unless they take long; `Closing.audited` says so at the end.
    """
    return ByClock(
        seconds,
        started=started,
        course=Course(file, writes=trainer.world.first),
        epochs=trainer.cfg.epochs,
        every=trainer.cfg.evaluate_every,
        world=trainer.world,
        closing=Closing(trainer.method, examiner, audited=audited, most=AUDITING * seconds),
        relative=lambda done: relative_cost(trainer.cfg, done),
    )


def relative_cost(cfg: TrainConfig, done: float) -> float:
    """The cost of a step at that share of a run, by its resolution: 1 at the full one."""
    share = cfg.resolution.at(Progress(int(done * cfg.epochs), cfg.epochs, done=done))
    return FIXED + (1.0 - FIXED) * share**2


def within(prepared: Prepared, started: float, world: World) -> Prepared:
    """Fitted to the budget: the widest network there is time for; epochs where a head alone needs less than the time.

    A head learns in seconds, and in more time only memorises wrong labels. Where its features took all of the time, it
    is trained for these seconds none the less.
    """
    seconds = prepared.config.train.budget
    assert seconds is not None
    if isinstance(prepared.spec, FeatureSpec):
        left = world.told([seconds - (time.monotonic() - started)])[0]
        if max(left, ANYWAY) > HEAD * prepared.config.train.epochs * len(prepared.train_rows):
            return replace(prepared, config=prepared.config.with_train(budget=None))
    prepared = replace(prepared, config=fit_network(prepared, seconds, world))
    refuse_short(seconds, started, world)
    return prepared


def fit_network(prepared: Prepared, seconds: float, world: World, *, speed: float | None = None) -> RunConfig:
    """The settings with the widest of `net.wider` for which there is time enough, and images enough.

    By the FLOPs of the networks and the `speed` of a convolution on this machine (FLOP/s), which is measured once and
    kept. It decides in tenths of an epoch, so a rough figure will do.
    """
    config, net = prepared.config, prepared.config.net
    found = net.name
    if not net.wider:
        return config
    speed = world.told([speed or convolution_speed(config.train.precision) if world.first else 0.0])[0]
    most = PER_IMAGE * math.sqrt(signal(ASSUMED, len(prepared.spec.classes))) * len(prepared.train_rows)
    usual = sum(relative_cost(config.train, (k + 0.5) / 50) for k in range(50)) / 50
    for name in net.wider:
        made = prepared.spec.network(config, name)
        flops = 6.0 * nets.multiply_adds(made, prepared.spec.size, prepared.spec.channels) * usual
        epochs = seconds * EFFICIENCY * speed / (flops * len(prepared.train_rows))
        if nets.parameters(made) > most or epochs < net.wider_epochs:
            break
        found = name
    return config.with_net(found)


def refuse_short(seconds: float, started: float, world: World) -> None:
    """Say so where the time is over before the first step."""
    used = world.told([time.monotonic() - started])[0]
    if used >= 0.9 * seconds:
        raise ConfigError(
            f"a budget of {seconds:g} s leaves no time to train: reading the data and setting up took {used:.0f} s; "
            "give more time."
        )


def copy_path(source: Path, folder: Path) -> None:
    """Give a new run the path that another one by the clock has taken."""
    file = source / FILE if source.is_dir() else source
    course = Course(file, writes=False)
    if not course.segments or not course.segments[-1].last:
        raise ConfigError(f"{file} is no path of a finished run with --budget; give the folder of one.")
    write_atomic(folder / FILE, lambda out: out.write(file.read_bytes()))


def with_budget(config: RunConfig, seconds: float) -> RunConfig:
    """The settings of a run by the clock, as its folder records them."""
    return config.with_train(budget=seconds, steps=None)
