"""A run that fits into a given time: measure the speed for a few seconds, then set its length.

The outcome is an ordinary number of steps in the resolved settings. A run with a budget is therefore as reproducible as
any other: the measurement decides how long it is, and nothing else.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from itertools import islice
from statistics import median

import numpy as np
import torch

from rte.config import RunConfig
from rte.errors import ConfigError
from rte.methods.base import Progress
from rte.run import Prepared, make_trainer
from rte.train.distributed import World
from rte.train.trainer import Trainer

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
LEAST = 20
"""Fewer steps than this are no training."""
SHARE = 0.97
"""The part of the budget that is planned; the rest is for checkpoints and the unforeseen."""
LONG = 1_000_000
"""Steps of the pretended run whose moments are timed."""
POINTS = 24
"""Moments of the run at which the number of views and their resolution are looked up."""
WARM, TIMED = 2, 4


@dataclass(frozen=True)
class Speed:
    """Seconds: of a step, averaged over the run; of the beginning of an epoch; of an evaluation."""

    step: float
    epoch: float
    evaluation: float


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

    Schedules stretch with the length. Every process of a torchrun comes to the same answer.
    """
    started = time.monotonic() if started is None else started
    world = World.join()
    trainer, _ = make_trainer(prepared, save=lambda name, state: None, world=world)
    speed = measure(trainer)
    gone = torch.tensor([time.monotonic() - started], dtype=torch.float64)
    world.average([gone])
    config = prepared.config
    per_epoch = max(1, len(prepared.train_rows) // config.train.batch)
    steps = affordable(speed, SHARE * (seconds - gone.item()), per_epoch, config.train.evaluate_every)
    if steps < LEAST:
        raise ConfigError(
            f"a budget of {seconds:.0f} s is enough for {max(steps, 0)} steps of {speed.step:.2g} s after the set-up, "
            "which is no training; give more time, or a smaller network (--net compact-16)."
        )
    return config.with_train(steps=steps, epochs=math.ceil(steps / per_epoch))


def affordable(speed: Speed, seconds: float, per_epoch: int, evaluate_every: int) -> int:
    """The most steps that fit into the time, with the epochs they begin and the evaluations they cause."""

    def cost(steps: int) -> float:
        epochs = math.ceil(steps / per_epoch)
        evaluations = math.ceil(epochs / evaluate_every)
        return steps * speed.step + epochs * speed.epoch + evaluations * speed.evaluation

    low, high = 0, max(1, int(seconds / speed.step) + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= seconds else (low, middle - 1)
    return low


def measure(trainer: Trainer) -> Speed:
    """Time some steps of a trainer that is thrown away afterwards, of each kind its schedules ask for."""
    moments: dict[tuple[int, float], list[float]] = {}
    trainer.cfg = trainer.cfg.model_copy(update={"steps": LONG})
    for fraction in np.linspace(0.0, 0.999, POINTS):
        moments.setdefault(_kind_at(trainer, float(fraction)), []).append(float(fraction))
    next(trainer.steps())  # compiles what is compiled on first use
    total, begins = 0.0, []
    for fractions in moments.values():
        first, step = _timed(trainer, fractions[len(fractions) // 2])
        begins.append(max(0.0, first - step))
        total += step * len(fractions)
    began = time.perf_counter()
    if trainer.world.first:
        trainer.examine(trainer.method)
    evaluation = time.perf_counter() - began
    figures = torch.tensor([total / POINTS, min(begins), evaluation], dtype=torch.float64)
    trainer.world.average([figures])
    step, begin, evaluation = figures.tolist()
    return Speed(step, begin, evaluation * trainer.world.size)


def _place(trainer: Trainer, fraction: float) -> None:
    trainer.step, trainer.done, trainer.opened = int(fraction * LONG), 0, False
    trainer.epoch = int(fraction * trainer.cfg.epochs)


def _kind_at(trainer: Trainer, fraction: float) -> tuple[int, float]:
    """What the cost of a step depends on: the number of views, and their resolution to a tenth."""
    t = Progress(int(fraction * trainer.cfg.epochs), trainer.cfg.epochs, step=int(fraction * LONG), steps=LONG)
    return trainer.method.views(t).total, round(trainer.cfg.resolution.at(t), 1)


def _timed(trainer: Trainer, fraction: float) -> tuple[float, float]:
    """Seconds of the first step of an epoch there, and of a usual one."""
    _place(trainer, fraction)
    times = []
    began = time.perf_counter()
    for _ in islice(trainer.steps(), 1 + WARM + TIMED):
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
    return times[0], median(times[1 + WARM :] or times)
