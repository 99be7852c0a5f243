"""The numbers of a comparison: mean and spread over seeds, and which differences are larger than the spread.

spread   standard deviation over seeds
tie      the mean is less than sqrt(s_a^2 + s_b^2) below the best one's, s_a and s_b being both spreads
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from rte.compare.plan import Comparison, label

Result: TypeAlias = dict[str, Any]
"""What result.json of a run says, or {"failed": why}."""


@dataclass(frozen=True)
class Figures:
    """A number of several runs."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.mean(self.values)

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds; unknown for one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Row:
    """A method of a comparison. Shares are 0 to 1; `figures` has those that its runs know.

    last, selected   accuracy on the test set after the last epoch, and of the epoch chosen on held-out noisy labels
    val              accuracy on held-out noisy labels after the last epoch
    memorised        share of the wrong training labels that the network predicts
    epochs, seconds (of training), memory (bytes, the process's peak)
    """

    method: str
    factor: float | None
    folders: tuple[str, ...]
    figures: Mapping[str, Figures] = field(default_factory=dict)
    behind: float | None = None
    """How far the mean is below the best one's; 0 for the best."""
    tie: bool = False
    """Whether that is less than the spread."""
    failed: str | None = None

    def tree(self) -> dict[str, Any]:
        """As plain values."""
        plain = asdict(self)
        plain["figures"] = {
            name: {"mean": found.mean, "spread": found.spread, "values": list(found.values)}
            for name, found in self.figures.items()
        }
        return plain


FIGURES: dict[str, Callable[[Result], float | None]] = {
    "last": lambda result: result.get("test", {}).get("last"),
    "selected": lambda result: result.get("selected", {}).get("test"),
    "val": lambda result: result.get("val", {}).get("last"),
    "memorised": lambda result: (result.get("memorisation") or {}).get("memorised"),
    "epochs": lambda result: float(result["epochs"]),
    "seconds": lambda result: float(result["train_seconds"]),
    "memory": lambda result: result.get("memory"),
}


def summarise(comparison: Comparison, factors: Mapping[str, float | None], results: Mapping[str, Result]) -> list[Row]:
    """A row for each method, in the order they were given in."""
    rows = []
    for config in comparison.configs:
        factor = factors[label(config)]
        trials = comparison.trials(config)
        if factor is None:
            why = str(results[trials[0].folder]["failed"])
            rows.append(Row(label(config), None, tuple(run.folder for run in trials), failed=why))
            continue
        runs = [comparison.run(config, factor, seed) for seed in range(comparison.seeds)]
        folders = tuple(run.folder for run in runs)
        found = [results[folder] for folder in folders]
        failed = next((str(result["failed"]) for result in found if "failed" in result), None)
        rows.append(Row(label(config), factor, folders, {} if failed else figures(found), failed=failed))
    return ranked(rows)


def figures(results: Sequence[Result]) -> dict[str, Figures]:
    """Those numbers that all runs know."""
    found = {name: [read(result) for result in results] for name, read in FIGURES.items()}
    return {name: Figures(tuple(v for v in values if v is not None)) for name, values in found.items() if _all(values)}


def _all(values: Sequence[float | None]) -> bool:
    return all(value is not None for value in values)


def measure(rows: Sequence[Row]) -> str:
    """What methods are ranked by: the test set, or held-out noisy labels where there is none."""
    return "last" if all("last" in row.figures for row in rows if not row.failed) else "val"


def ranked(rows: Sequence[Row]) -> list[Row]:
    """The same rows with how far each is behind the best, and whether that is a tie."""
    by = measure(rows)
    done = [row for row in rows if not row.failed and by in row.figures]
    if not done:
        return list(rows)
    leader = max(done, key=lambda row: row.figures[by].mean)
    return [_placed(row, leader, by) if row in done else row for row in rows]


def _placed(row: Row, leader: Row, by: str) -> Row:
    own, top = row.figures[by], leader.figures[by]
    behind = top.mean - own.mean
    spread = None if own.spread is None or top.spread is None else math.hypot(own.spread, top.spread)
    tie = row is not leader and spread is not None and behind < spread
    return Row(row.method, row.factor, row.folders, row.figures, behind, tie, row.failed)
