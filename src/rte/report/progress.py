"""What a person sees while a run goes on: one bar with the share done, the time left and the live accuracy."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rte.methods.base import Progress as Moment
from rte.train.trainer import Scores

CELLS = 1_000_000
SHOWN = 12
"""Runs of a series that are shown at a time: the latest ones."""


class RunBar:
    """An observer of one run; several may follow each other in one display."""

    def __init__(self, bars: Progress, title: str) -> None:
        self.bars = bars
        self.task = bars.add_task(title, total=CELLS, unit="epoch", epoch="", loss="", accuracy="")

    def step(self, t: Moment, terms: dict[str, float]) -> None:
        loss = f"loss {terms['loss']:.3f}" if "loss" in terms else ""
        self.bars.update(self.task, completed=int(t.fraction * CELLS), epoch=f"{t.epoch + 1}/{t.epochs}", loss=loss)

    def epoch(self, epoch: int, scores: Scores) -> None:
        names = {"test": "test", "val": "noisy val"}
        shown = [f"{label} {100 * scores[name]['top1']:.1f}%" for name, label in names.items() if name in scores]
        self.bars.update(self.task, accuracy=" ".join(shown))


class Bars:
    """The display that holds the bars."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.description:<14}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[unit]} {task.fields[epoch]:>7}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}"),
            TextColumn("[bold]{task.fields[accuracy]}"),
            console=console,
            refresh_per_second=4,
        )

    def __enter__(self) -> Bars:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:  # what never began shows no bar
            for task in self.progress.tasks:
                self.progress.update(task.id, visible=task.visible and task.completed > 0)
        self.progress.stop()

    def count(self, title: str) -> Callable[[int, int], None]:
        """A bar that is told how many of how many are done; shown from the first one on."""
        tasks: list[TaskID] = []

        def tell(done: int, total: int) -> None:
            if not tasks or self.progress.tasks[tasks[-1]].total != total:
                tasks.append(self.progress.add_task(title, total=total, unit="", epoch="", loss="", accuracy=""))
            self.progress.update(tasks[-1], completed=done, epoch=f"{done:,}/{total:,}")

        return tell

    def run(self, title: str) -> RunBar:
        for task in self.progress.tasks[: 1 - SHOWN]:
            self.progress.update(task.id, visible=False)
        return RunBar(self.progress, title)
