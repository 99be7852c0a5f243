"""What `rte tune` does: a search with its table in the terminal, and its figure at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rte.config import RunConfig, validate
from rte.errors import ConfigError
from rte.report.population import PopulationTable
from rte.report.schedules import draw
from rte.search import pbt
from rte.search.definition import Search, SearchConfig, read_plan, read_records, write_plan
from rte.search.space import declared, narrow


def plan(config: RunConfig, options: Mapping[str, Any], search: Iterable[str], data_dir: Path | None) -> Search:
    """The search that a command line asks for; options that are None keep their defaults."""
    space = narrow(declared(config.method_name), search, config)
    return Search.make(config, validate(SearchConfig, _given(options), "search"), space, data_dir)


def planned(
    folder: Path,
    trials: Mapping[str, Any],
    data_dir: Path | None,
    settings: Iterable[Any] = (),
    *,
    trust_code: bool = False,
) -> Search:
    """The search of a folder, with trials that may be of another size and data that may lie elsewhere by now.

    `settings` are those that only a new search can have; all must be None.
    """
    if any(value is not None for value in settings):
        raise ConfigError("--resume takes the settings of the search from its folder; leave the others out.")
    old = read_plan(folder, trust_code=trust_code)
    tree = {**old.search.model_dump(), **_given(trials)}
    new = replace(old, search=validate(SearchConfig, tree, "search"), data_dir=data_dir or old.data_dir)
    write_plan(folder, new)
    return new


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def begin(plan: Search, folder: Path) -> Path:
    """Make the folder of a new search."""
    pbt.begin(plan, folder)
    return folder


def go(plan: Search, folder: Path, console: Console, *, address: str | None, dashboard: bool) -> dict[str, Any]:
    """Search until the end, and draw what was found."""
    with PopulationTable(console) as table:
        result = pbt.go(plan, folder, watcher=table, address=address, dashboard=dashboard)
    population = plan.population(read_records(folder))
    draw(population, population.winner(), folder / "schedules.png")
    console.print(
        f"The population trained for {result['tune']['train_seconds']:.0f} s in all; the schedule it found is "
        f"{folder / 'schedule.json'}, drawn in schedules.png beside it. The winner:",
        highlight=False,
    )
    return result
