"""What `rte reproduce` does: plan, say what it costs, train what is missing, write the results."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import TaskID
from rich.table import Table as Grid

from rte.errors import ConfigError, DataError
from rte.report.progress import Bars
from rte.reproduce import cost, runner, summary
from rte.reproduce.define import SIZES, Size, Table, chosen
from rte.reproduce.plan import Job, Options, jobs, shard
from rte.train.trainer import Interrupted, Observer


def listing(console: Console, out: Path) -> None:
    """All tables with the cost of both sizes."""
    from rte.reproduce.tables import TABLES

    grid = Grid(title="rte reproduce TABLE", title_justify="left")
    for name in ("table", "what", "in the paper", "paper: runs", "V100 hours", "laptop: runs", "TFLOP"):
        grid.add_column(name, justify="left" if name in ("table", "what", "in the paper") else "right")
    for table in TABLES:
        cells = []
        for size in SIZES:
            if size not in table.sizes:
                cells += ["–", "–"]
                continue
            found = cost.estimate(jobs([table], Options(size=size)), out / "none")
            amount = f"{found.hours(cost.V100):,.0f}" if size == "paper" else f"{found.flops / 1e12:,.0f}"
            cells += [str(found.runs), amount]
        grid.add_row(table.name, table.title, table.source, *cells)
    console.print(grid)
    console.print(
        f"A V100 is assumed to keep up {cost.V100 / 1e12:g} TFLOP/s. Tables share runs: `rte reproduce all --dry-run` "
        "counts each once, and says what it takes on this machine.",
        highlight=False,
    )


@dataclass(frozen=True)
class How:
    """Where things are and go, and how far to go."""

    out: Path
    results: Path | None = None
    data_dir: Path | None = None
    shard: str | None = None
    dry_run: bool = False
    only_summarise: bool = False
    yes: bool = False


def reproduce(name: str, options: Options, how: How, console: Console) -> bool:
    """One table, or all of a size; False if it was stopped."""
    tables = chosen(name, options.size)
    todo = shard(jobs(tables, options), how.shard)
    results = how.results or (Path("results") if options.plain else how.out / "results")
    if how.only_summarise:
        _summarise(tables, options, how.out, results, console)
        return True
    if not how.dry_run:
        todo = _with_data(todo, how, console, refuse=name != "all")
    console.print(_plan(todo, how.out, options.size), highlight=False)
    if how.dry_run:
        console.print(_listed(todo, how.out))
        return True
    _confirm(options.size, todo, how)
    try:
        with Bars(console) as bars:
            busy = runner.run(
                todo, how.out, data_dir=how.data_dir, watcher=GridBars(bars, console, len(runner.stages(todo)))
            )
    except (Interrupted, KeyboardInterrupt):
        print("rte: stopped; all that is done is kept, and the same command goes on from here.", file=sys.stderr)
        return False
    _summarise(tables, options, how.out, results, console)
    if busy:
        console.print(f"{len(busy)} runs are in the hands of other processes; when they are done, add --summarise.")
    return True


def _plan(todo: Sequence[Job], out: Path, size: Size) -> str:
    """Runs, operations, and hours, in two sentences."""
    found = cost.estimate(todo, out)
    text = f"{found.runs} runs, {found.todo} of them still to do: {found.flops / 1e15:,.2f} PFLOP"
    if found.unknown:
        text += f" (and {found.unknown} on data of unknown size)"
    if not found.flops:
        return f"{text}."
    if size == "paper":
        return (
            f"{text}, about {found.hours(cost.V100):,.0f} V100 hours if a V100 keeps up {cost.V100 / 1e12:g} TFLOP/s "
            "in fp32 (an assumption; nothing of this size was run)."
        )
    rate, source = cost.rate_here(todo, out)
    minutes = 60 * found.hours(rate)
    return f"{text}, about {minutes:,.0f} minutes on this machine at {rate / 1e9:,.0f} GFLOP/s (from {source})."


def _listed(todo: Sequence[Job], out: Path) -> Grid:
    grid = Grid(title_justify="left")
    for name in ("run", "net", "epochs", "measures", "state"):
        grid.add_column(name)
    for job in todo:
        there = runner.state(job, out)
        state = "failed" if there.failed else "done" if there.complete else "trained" if there.trained else "to do"
        epochs = str(job.config.train.epochs) if job.kind != "counts" else "–"
        grid.add_row(job.title, job.config.net.name, epochs, " ".join(sorted(job.measures)), state)
    return grid


def _with_data(todo: list[Job], how: How, console: Console, *, refuse: bool) -> list[Job]:
    """The jobs whose data is there; with `refuse`, none may lack it."""
    missing = runner.missing_data(todo, how.out, how.data_dir)
    if missing and (refuse or len(missing) == len(todo)):
        raise DataError(next(iter(missing.values())))
    for sentence in dict.fromkeys(missing.values()):
        number = sum(sentence == other for other in missing.values())
        console.print(f"{number} runs are left out: {sentence}", highlight=False)
    return [job for job in todo if job.folder not in missing]


def _confirm(size: Size, todo: Sequence[Job], how: How) -> None:
    """The paper's size takes weeks: nobody should start it by mistake."""
    free = all(job.kind == "counts" or runner.state(job, how.out).complete for job in todo)
    if size != "paper" or how.yes or free:
        return
    if not sys.stdin.isatty():
        raise ConfigError("the paper's size takes long; pass --yes to start it, or --dry-run to see what it costs.")
    if input("Start? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was started; --size laptop is the small size.")


def _summarise(tables: Sequence[Table], options: Options, out: Path, results: Path, console: Console) -> None:
    for table in tables:
        path = summary.write(summary.summarise(table, options, out), results)
        console.print(f"{table.title}: {path}", highlight=False, soft_wrap=True)


class GridBars:
    """A bar for the grid, a bar for the run, and a line for each run that is done."""

    def __init__(self, bars: Bars, console: Console, total: int) -> None:
        self.bars, self.console, self.total, self.done = bars, console, total, 0
        fields = {"unit": "run  ", "epoch": f"0/{total}", "loss": "", "accuracy": ""}
        self.task = bars.progress.add_task("all runs", total=total, **fields)  # type: ignore[arg-type]
        self.current: TaskID | None = None

    def begin(self, job: Job, number: int) -> Observer:
        bar = self.bars.run(job.title)
        self.current = bar.task
        self.console.print(f"{time.strftime('%H:%M:%S')} {number}/{self.total} {job.title} begins", highlight=False)
        return bar

    def measuring(self, name: str, share: float) -> None:
        if self.current is not None:
            self.bars.progress.update(self.current, loss=f"{name} {100 * share:.0f} %")

    def end(self, job: Job, outcome: str) -> None:
        if self.current is not None:
            self.bars.progress.remove_task(self.current)
            self.current = None
        self.done += 1
        self.bars.progress.update(self.task, completed=self.done, epoch=f"{self.done}/{self.total}")
        self.console.print(f"{time.strftime('%H:%M:%S')} {job.title}: {outcome}", highlight=False, soft_wrap=True)
