"""The schedule that a search found: the values along the winner's lineage, epoch by epoch, as a file to train with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from rte import registry
from rte.config import RunConfig, Tree, merge, resolve, validate
from rte.errors import ConfigError
from rte.files import read_json
from rte.search.population import Record
from rte.search.space import Number, is_schedule
from rte.settings import Settings, setting


class FoundSchedule(Settings):
    """What schedule.json holds."""

    format: Literal[1] = setting(1, "of this file")
    data: str = setting(..., "what it was found on")
    method: str = setting(..., "the method it is for")
    epochs: int = setting(..., "how many epochs it covers", ge=1)
    interval: int = setting(..., "epochs between decisions", ge=1)
    population: int = setting(..., "how many members searched", ge=1)
    seed: int = setting(..., "of the search", ge=0)
    score: float = setting(..., "the winner's accuracy on held-out noisily labelled data")
    members: list[int] = setting(..., "the lineage: which member trained in each epoch")
    values: dict[str, list[Number]] = setting(..., "for each searched setting, its value in each epoch")

    @model_validator(mode="after")
    def _complete(self) -> FoundSchedule:
        lengths = {"members": len(self.members), **{key: len(column) for key, column in self.values.items()}}
        for name, length in lengths.items():
            if length != self.epochs:
                raise ValueError(f"{name} has {length} values for {self.epochs} epochs")
        return self

    def tree(self, epochs: int) -> Tree:
        """The settings of a run of `epochs` epochs under this schedule, stretched or squeezed if it covers others."""
        tree: Tree = {"train": {"epochs": epochs}, "method": {"name": self.method}}
        for key, column in self.values.items():
            section, name = key.split(".", 1)
            moves = is_schedule(self.method, key)
            tree.setdefault(section, {})[name] = self._steps(column, epochs) if moves else column[-1]
        return tree

    def _steps(self, column: Sequence[Number], epochs: int) -> Tree:
        starts = [e for e in range(self.epochs) if e == 0 or column[e] != column[e - 1]]
        exact = epochs == self.epochs
        # every key is written: a preset's own steps must not shine through where the two tables are merged
        return {
            "kind": "steps",
            "values": [column[e] for e in starts],
            "epochs": starts if exact else None,
            "fractions": None if exact else [e / self.epochs for e in starts],
        }

    def notes(self) -> list[str]:
        """What a replay cannot follow: settings that are one number for a whole run keep the winner's last value."""
        frozen = {key: column[-1] for key, column in self.values.items() if not is_schedule(self.method, key)}
        return [f"{key} cannot change during a run; it is {value:g} throughout." for key, value in frozen.items()]


def from_lineage(
    lineage: Sequence[Record], *, data: str, method: str, interval: int, population: int, seed: int
) -> FoundSchedule:
    """The schedule of the intervals that led to the winner."""
    epochs = [record for record in lineage for _ in range(record.start, record.until)]
    return FoundSchedule(
        data=data,
        method=method,
        epochs=len(epochs),
        interval=interval,
        population=population,
        seed=seed,
        score=lineage[-1].rank,
        members=[record.member for record in epochs],
        values={key: [record.values[key] for record in epochs] for key in lineage[-1].values},
    )


def read_schedule(path: Path) -> FoundSchedule:
    """The schedule in a file that `rte tune` wrote."""
    if not path.is_file():
        raise ConfigError(f"there is no schedule {path}; give the schedule.json of a folder that `rte tune` made.")
    tree: Any = read_json(path)
    return validate(FoundSchedule, tree, str(path))


def resolve_with(
    found: FoundSchedule,
    preset: str,
    options: Mapping[str, Any],
    overrides: Iterable[str] = (),
    *,
    trust_code: bool = False,
) -> RunConfig:
    """The config that a command line with `--schedule` asks for: the schedule counts more than the preset, less than
    options and `--set`. A run of another length gets the schedule stretched or squeezed to it."""
    named = options.get("method", {}).get("name")
    method = registry.canonical("method", str(named or found.method))
    if method != found.method:
        raise ConfigError(f"the schedule was found for method {found.method}, not {method}; leave out --method.")
    registry.method(method, trusted=trust_code or named is not None)  # a schedule is trusted no more than a preset
    overrides = list(overrides)
    config = resolve(preset, merge(found.tree(found.epochs), options), overrides, trust_code=trust_code)
    if config.train.epochs == found.epochs:
        return config
    return resolve(preset, merge(found.tree(config.train.epochs), options), overrides, trust_code=trust_code)
