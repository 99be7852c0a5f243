"""What is recorded of a method's finished runs, for its page: from results/*.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compared import of_method

from rte.reproduce.tables import TABLES

RESULTS = Path(__file__).parents[1] / "results"
NOTHING = "No run of this method is recorded yet.\n"


def records(name: str, results: Path = RESULTS) -> str:
    """Tables of the runs of a method by the clock, of its rows in the tables of the paper, and of digits."""
    found = (by_the_clock(name, results), in_the_tables(name, results), of_method(name, results))
    parts = [part for part in found if part]
    return "\n".join(parts) or NOTHING


def by_the_clock(name: str, results: Path) -> str:
    """Its rows in results/frontier.json."""
    rows = [row for row in _read(results / "frontier.json").get("rows", []) if row["method"] == name]
    lines = [
        f"| {row['noise']} | {row['minutes']:g} | {_number(row['mean'], row['spread'])} | {len(row['last'])} |"
        for row in sorted(rows, key=lambda row: (row["noise"], row["minutes"]))
    ]
    if not lines:
        return ""
    head = ["CIFAR-10, preset `laptop`, two CPU cores (`results/frontier.json`):", ""]
    head += ["| noise | minutes | accuracy `last` % | runs |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *lines, ""])


def in_the_tables(name: str, results: Path) -> str:
    """Its rows in the tables of the paper, at the size of a laptop."""
    lines = []
    for table in TABLES:
        cells = _read(results / f"{table.name}.json").get("cells", [])
        ours = {(cell["row"], cell["column"]): cell["ours"].get("accuracy") for cell in cells}
        for cell in table.cells:
            found = ours.get((cell.row, cell.column))
            if found and cell.settings.get("method", {}).get("name", "rte") == name:
                accuracy = _number(found["mean"], found["spread"])
                lines.append(f"| {table.title} | {cell.row} | {cell.column} | {accuracy} | {len(found['values'])} |")
    if not lines:
        return ""
    head = ["CIFAR-10, a small network ([all results, with their sizes](../results.md)):", ""]
    head += ["| table | row | column | accuracy `last` % | runs |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *lines, ""])


def _number(mean: float, spread: float | None) -> str:
    return f"{mean:.1f}" if spread is None else f"{mean:.1f} ± {spread:.1f}"


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found
