"""Event files for TensorBoard, written while a run goes on. The journal remains the record: these are a copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rte.errors import UserError
from rte.methods.base import Progress
from rte.train.trainer import LOG_EVERY, Observer, Scores

FOLDER = "tensorboard"
"""In a run folder."""


class EventFiles:
    """An observer that writes every term of every 20th step, and the scores of each evaluation."""

    def __init__(self, run: Path) -> None:
        if find_spec("tensorboardX") is None:
            raise UserError(
                "--tensorboard needs tensorboardX; install it with `pip install "
                "'robust-temporal-ensembling[tensorboard]'`, or leave it out."
            )
        self.folder, self.last = run / FOLDER, 0
        self._writer: Any = None

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.last = t.step + 1
        if t.step % LOG_EVERY == 0:
            for name, value in terms.items():
                self._events.add_scalar(f"train/{name}", float(value), t.step)

    def epoch(self, epoch: int, scores: Scores) -> None:
        for name, values in scores.items():
            for measure, value in values.items():
                self._events.add_scalar(f"{name}/{measure}", value, self.last)
        self._events.flush()

    @property
    def _events(self) -> Any:
        """Made with the first event, when the run folder is there; events after it, of before a kill, are forgotten."""
        if self._writer is None:
            from tensorboardX import SummaryWriter

            self._writer = SummaryWriter(str(self.folder), purge_step=max(0, self.last - 1))
        return self._writer

    def close(self) -> None:
        """Write what is not written yet."""
        if self._writer is not None:
            self._writer.close()


class Watchers:
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = observers

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        for observer in self.observers:
            observer.step(t, terms)

    def epoch(self, epoch: int, scores: Scores) -> None:
        for observer in self.observers:
            observer.epoch(epoch, scores)
