"""What a person sees while a search goes on: the population as a table, with scores, lineages and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rte.report.tables import percent
from rte.search.population import Population

ANCESTORS = 6
"""How many forefathers of a member are shown."""


class PopulationTable:
    """A live table in a terminal; elsewhere, a line whenever the whole population has reached a decision."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.clock = console, clock
        console.file = console.file  # hold on to it: Ray, which talks on stdout too, is redirected meanwhile
        self.population: Population | None = None
        self.began, self.done_before, self.told = 0.0, 0, 0
        self.live = Live(console=console, refresh_per_second=2, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> PopulationTable:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def begin(self, population: Population) -> None:
        """Watch this one."""
        self.population, self.began, self.done_before = population, self.clock(), population.done
        self.told = population.needed_from
        self.update()

    def update(self) -> None:
        """Show the present state."""
        if (population := self.population) is None:
            return
        if self.console.is_terminal:
            self.live.update(table(population, self.left()))
        elif population.needed_from > self.told:
            self.told = population.needed_from
            self.console.print(line(population, self.told, self.left()), highlight=False)

    def left(self) -> float | None:
        """Seconds until the end, at the pace of this session; None before its first interval is done."""
        assert self.population is not None
        done = self.population.done - self.done_before
        if not done:
            return None
        return (self.clock() - self.began) / done * (self.population.total - self.population.done)


def table(population: Population, left: float | None) -> Table:
    """One row per member, the best first."""
    done = f"{population.done} of {population.total} intervals"
    out = Table(title=f"Population based training, {done}, {duration(left)} left", title_justify="left")
    for name in ("member", "epoch", "score %", "lineage", "now"):
        out.add_column(name, justify="right" if name in ("epoch", "score %") else "left", no_wrap=True)
    ranks = {m: float("-inf") if (r := population.latest(m)) is None else r.rank for m in range(population.size)}
    for member in sorted(ranks, key=lambda m: (-ranks[m], m)):
        latest, job = population.latest(member), population.running.get(member)
        score = "" if latest is None else "diverged" if latest.score is None else percent(latest.score)
        now = "waits" if job is None else f"trains to epoch {job.until}"
        if population.reached(member) == population.epochs:
            now = "done"
        out.add_row(str(member), str(population.reached(member)), score, ancestry(population, member), now)
    return out


def ancestry(population: Population, member: int) -> str:
    """Whom a member's state comes from, newest first: "3 < 0 < 7"."""
    chain: list[int] = []
    for record in reversed(population.lineage(member)):
        if not chain or chain[-1] != record.member:
            chain.append(record.member)
    shown = " < ".join(str(each) for each in (chain or [member])[: ANCESTORS + 1])
    return shown + (" < ..." if len(chain) > ANCESTORS + 1 else "")


def line(population: Population, epoch: int, left: float | None) -> str:
    """The population at an epoch that all have reached, in one sentence."""
    rung = population.rungs[epoch]
    ranked = sorted(rung.values(), key=lambda record: record.rank)
    best, middle = ranked[-1], ranked[len(ranked) // 2]
    heirs = sum(record.parent != record.member for record in rung.values())
    return (
        f"epoch {epoch}: best {percent(best.score)} % (member {best.member}), median {percent(middle.score)} %, "
        f"{heirs} inherited; {duration(left)} left"
    )


def duration(seconds: float | None) -> str:
    """1:02:03, or a dash while nobody knows."""
    return "–" if seconds is None else str(timedelta(seconds=round(seconds)))
