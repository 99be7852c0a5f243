"""What the benchmarks that train share: runs that are skipped when they are done, and what a step costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Any

from rte.config import RunConfig
from rte.errors import CheckpointError, UserError
from rte.files import read_json
from rte.methods.base import Progress
from rte.run.budget import with_budget
from rte.run.build import load_dataset, make_trainer, prepare, settled
from rte.run.folder import read_config
from rte.run.start import resume, start
from rte.train.distributed import World
from rte.train.timeline import BySteps, Place
from rte.train.trainer import Interrupted

FRACTIONS = tuple((i + 0.5) / 100 for i in range(100))
"""Moments of a run at which the number of views and their resolution are looked up."""
WARM, TIMED = 2, 4
"""Steps that are made, and steps that are timed."""


def plainly(main: Callable[[], None]) -> None:
    """Run a benchmark: a user's mistake and a stop are one sentence, not a traceback."""
    try:
        main()
    except Interrupted as stop:
        raise SystemExit(f"stopped by {stop}; the same command goes on from here.") from None
    except UserError as error:
        raise SystemExit(str(error)) from None


def trained(
    folder: Path,
    config: RunConfig,
    data_dir: Path | None = None,
    *,
    seconds: float | None = None,
    like: Path | None = None,
) -> dict[str, Any]:
    """The result of a run: read if it is there, continued if it was begun, else made.

    With `seconds` it is a run by the clock, or a run of the path that one has taken whose folder is `like`.
    """
    if not folder.exists():
        return start(config, folder, data_dir=data_dir, budget=seconds, clock=like)
    found = read_config(folder)
    if seconds is not None:
        config = with_budget(config.with_net(found.net.name), seconds)
    if found.digest != settled(config, World()).digest:
        raise CheckpointError(f"{folder} holds a run with other settings; choose another folder.")
    done = folder / "result.json"
    result: dict[str, Any] = read_json(done) if done.exists() else resume(folder, data_dir=data_dir)
    return result


class Pretended(BySteps):
    """A run of so many epochs that stands at one moment for as long as it is timed."""

    def __init__(self, epochs: int, done: float) -> None:
        super().__init__(epochs, None, epochs)
        self.place = epochs, done

    def where(self, place: Place) -> tuple[int, float | None]:
        return self.place

    def over(self, place: Place) -> bool:
        return False


class Meter:
    """What a step costs, from the times of steps on a trainer that is thrown away afterwards.

    Each kind of step that the schedules bring is timed once. A method that goes by what it has seen (`auto`, DivideMix)
    is timed as it is when it has seen nothing.
    """

    def __init__(self, config: RunConfig, data_dir: Path | None) -> None:
        prepared = prepare(config, load_dataset(config, data_dir))
        self.trainer, _ = make_trainer(prepared, save=lambda name, state: None)
        self.epochs = config.train.epochs
        self.begin = {name: value.clone() for name, value in self.trainer.method.state_dict().items()}
        next(self.trainer.steps())  # compiles what is compiled on first use

    def step(self) -> float:
        """Seconds of a step, averaged over the run; timed anew each time this is asked."""
        times: dict[tuple[int, float], float] = {}
        return mean(self._seconds(fraction, times) for fraction in FRACTIONS)

    def _seconds(self, fraction: float, times: dict[tuple[int, float], float]) -> float:
        trainer, method, epoch = self.trainer, self.trainer.method, int(fraction * self.epochs)
        method.load_state_dict(self.begin)
        trainer.timeline = Pretended(self.epochs, fraction)
        trainer.epoch, trainer.done, trainer.step, trainer.opened = epoch, 0, 0, False
        t = Progress(epoch, self.epochs, done=fraction)
        kind = method.views(t).total, round(trainer.cfg.resolution.at(method.clock(t).moment), 1)
        if kind not in times:
            made, began = [], time.perf_counter()
            for _ in islice(trainer.steps(), 1 + WARM + TIMED):
                made.append(time.perf_counter() - began)
                began = time.perf_counter()
            times[kind] = median(made[1 + WARM :] or made)
        return times[kind]


def step_costs(configs: dict[str, RunConfig], data_dir: Path | None, rounds: int = 7) -> dict[str, float]:
    """Median seconds of a step of each run, averaged over its schedule; in turn, so that all meet the same machine."""
    meters = {name: Meter(config, data_dir) for name, config in configs.items()}
    times: dict[str, list[float]] = {name: [] for name in configs}
    for _ in range(rounds):
        for name, meter in meters.items():
            times[name].append(meter.step())
    return {name: median(values) for name, values in times.items()}
