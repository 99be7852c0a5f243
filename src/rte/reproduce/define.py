"""What an experiment is: a table of cells, each one training run per seed, with the paper's number beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from rte import registry
from rte.errors import ConfigError, did_you_mean

Size = Literal["paper", "laptop"]
SIZES: tuple[Size, ...] = ("paper", "laptop")
Changes = dict[str, Any]
Value = float | str | None
"""A number of the paper in percent, "fail" where it says that training failed, or None where it has none."""

MEASURES = {
    "accuracy": "accuracy %",
    "top5": "top-5 accuracy %",
    "mce": "mCE %",
    "memorised": "wrong labels memorised %",
}
"""What a cell of a table may show; of mCE and of what is memorised less is better."""

OBJECTIVE, TEACHER = ("q", "jsd_weight", "ecr_weight"), ("decay", "warmup")
"""What a method that is compared with RTE takes over from the preset's settings for RTE."""
AS_BATCH = "train.batch"
"""Stands for the run's batch size in the settings of a cell."""


@dataclass(frozen=True)
class Cell:
    """One entry: `settings` are what differs from the preset, `paper` is {measure: number}."""

    row: str
    column: str
    settings: Changes = field(default_factory=dict)
    paper: dict[str, Value] = field(default_factory=dict)
    data: str = "cifar10"
    inherit: tuple[str, ...] = ()
    """Keys of the preset's method table that count here too, though the method is another, which must have them."""
    laptop: bool = True
    """Whether the laptop size has it; `--only` gives it anyway."""
    search: bool = False
    """Whether it is a search by population based training instead of a run."""

    @property
    def title(self) -> str:
        return f"{self.row}, {self.column}"

    def matches(self, texts: Iterable[str]) -> bool:
        """Whether row, column or data contains one of the texts."""
        own = f"{self.row} {self.column} {self.data}".lower()
        return any(text.lower() in own for text in texts)


@dataclass(frozen=True)
class Table:
    """A table or figure. `note` is what has to be said about it."""

    name: str
    title: str
    source: str
    cells: tuple[Cell, ...]
    measures: tuple[str, ...] = ("accuracy",)
    laptop_measures: tuple[str, ...] | None = None
    """Fewer of them at laptop size; None: the same."""
    figures: tuple[str, ...] = ()
    """Further measures for a figure: "reliability", "losses", "curve" (test accuracy after some epochs)."""
    compare: Literal["rows", "columns"] = "rows"
    """Along what the paper's ordering is compared with ours."""
    sizes: tuple[Size, ...] = SIZES
    others: tuple[tuple[str, str, Value], ...] = ()
    """Numbers of other work that the paper quotes, (name, column, number): shown, not run."""
    note: str = ""
    kind: Literal["train", "counts"] = "train"

    def measured(self, size: Size) -> tuple[str, ...]:
        """What the cells of a size show."""
        return self.laptop_measures if size == "laptop" and self.laptop_measures else self.measures

    def at(self, size: Size, only: Iterable[str] = ()) -> tuple[Cell, ...]:
        """The cells of a size, or of any size those that match one of the texts in `only`."""
        if size not in self.sizes:
            raise ConfigError(
                f"'{self.name}' exists at size {' and '.join(self.sizes)} only: {self.note or self.title}; "
                f"pass --size {self.sizes[0]}."
            )
        chosen = tuple(only)
        if not chosen:
            return tuple(cell for cell in self.cells if size == "paper" or cell.laptop)
        found = tuple(cell for cell in self.cells if cell.matches(chosen) and (size == "paper" or not cell.search))
        if not found:
            rows = sorted({cell.row for cell in self.cells})
            raise ConfigError(f"no cell of '{self.name}' contains '{chosen[0]}'; its rows are: {', '.join(rows)}.")
        return found


def find(name: str) -> Table:
    """The table of that name."""
    from rte.reproduce.tables import TABLES

    for table in TABLES:
        if table.name == name:
            return table
    names = [table.name for table in TABLES]
    raise ConfigError(f"there is no table '{name}'; {did_you_mean(name, [*names, 'all', 'list'])}")


def chosen(name: str, size: Size) -> list[Table]:
    """The table of that name, or with "all" every one that exists at this size."""
    if size not in SIZES:
        raise ConfigError(f"--size {size} is neither paper nor laptop; choose one of them.")
    if name != "all":
        return [find(name)]
    from rte.reproduce.tables import TABLES

    return [table for table in TABLES if size in table.sizes]


def compared() -> list[str]:
    """The methods that have a row of ours in a table of the paper."""
    from rte.reproduce.tables import TABLES

    rows = {str(cell.settings.get("method", {}).get("name", "rte")) for table in TABLES for cell in table.cells}
    return [name for name in registry.methods() if name in rows]
