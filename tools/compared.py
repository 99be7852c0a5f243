"""The comparison of all methods on digits, from results/digits.json: one table of all, and one for a method's page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rte.files import read_json

Tree = dict[str, Any]
NOISES = {
    "none": "clean labels",
    "symmetric:0.4": "symmetric 40 %",
    "symmetric:0.6": "symmetric 60 %",
    "symmetric:0.8": "symmetric 80 %",
    "pair:0.45": "pair 45 %",
}
"""In the order of the columns."""
WIDTH = 118
"""Of what is no table."""
GIVEN_HELP = "†"
"""Behind methods that know of some labels that they are right."""


def overview(found: Tree) -> str:
    """A row for each method, a column for each noise; what is best or ties with it is bold."""
    groups = [group for group in ("all", "trusted") if any(group in noise for noise in found["noises"].values())]
    noises = [noise for noise in NOISES if noise in found["noises"]]
    lines = [
        f"| method | rate | {' | '.join(NOISES[noise] for noise in noises)} |",
        f"| --- |{' ---: |' * (1 + len(noises))}",
    ]
    for group in groups:
        rows = {noise: {row["method"]: row for row in found["noises"][noise].get(group, [])} for noise in noises}
        names = list(dict.fromkeys(name for column in rows.values() for name in column))
        for name in sorted(names, key=lambda name: -_mean_over(rows, name)):
            rate = found["rates"].get(group, {}).get(name)
            cells = [_cell(rows[noise].get(name)) for noise in noises]
            title = f"`{name}`" + (f" {GIVEN_HELP}" if group == "trusted" else "")
            lines.append(f"| {title} | {'–' if rate is None else f'{rate:g}'} | {' | '.join(cells)} |")
    return f"{_setting(found)}\n\n" + "\n".join(lines) + "\n"


def of_method(name: str, results: Path) -> str:
    """Its rows of that comparison, with the epoch that noisy labels choose and what was memorised."""
    path = results / "digits.json"
    found: Tree = read_json(path) if path.is_file() else {"noises": {}}
    lines = []
    for noise, group, row in _rows_of(name, found):
        title = NOISES[noise] + (f" {GIVEN_HELP}" if group == "trusted" else "")
        if row["failed"]:
            lines.append(f"| {title} | failed | | | |")
            continue
        cells = [_number(row.get(what)) for what in ("last", "selected", "memorised")]
        lines.append(f"| {title} | {' | '.join(cells)} | {len(row['last'])} |")
    if not lines:
        return ""
    note = f"\n{GIVEN_HELP}: {found['trusted']} labels are known to be right." if GIVEN_HELP in "".join(lines) else ""
    head = [f"Digits, all methods alike ([the comparison](../comparing.md#digits), `results/digits.json`).{note}", ""]
    head += ["| noise | accuracy `last` % | chosen % | memorised % | runs |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *lines, ""])


def _rows_of(name: str, found: Tree) -> Iterator[tuple[str, str, Tree]]:
    for noise in (noise for noise in NOISES if noise in found["noises"]):
        for group, rows in found["noises"][noise].items():
            yield from ((noise, group, row) for row in rows if row["method"] == name)


def _setting(found: Tree) -> str:
    """How the runs were made, and how much of it is done."""
    counts = [len(row["last"]) for rows in _groups(found) for row in rows if row.get("last")]
    least, wanted = min(counts, default=0), found["seeds"]
    lacking = [noise for noise in NOISES if noise not in found["noises"]]
    done = f"{wanted} seeds" if least == wanted and not lacking else f"**not finished**: {least} of {wanted} seeds"
    if lacking:
        done += f", and nothing yet of {', '.join(NOISES[noise] for noise in lacking)}"
    return textwrap.fill(
        f"Test accuracy `last` in per cent, mean ± standard deviation; {found['epochs']} epochs, {done}. Bold: the "
        "best of a column and all that tie with it. rate: the factor of the learning rate that was chosen at "
        f"{NOISES[found['rated']]}. {GIVEN_HELP}: {found['trusted']} labels are known to be right, so that fewer are "
        "wrong; these rows are compared with each other alone.",
        WIDTH,
    )


def _groups(found: Tree) -> Iterator[Sequence[Tree]]:
    for noise in found["noises"].values():
        yield from noise.values()


def _mean_over(rows: dict[str, dict[str, Tree]], name: str) -> float:
    values = [mean(column[name]["last"]) for column in rows.values() if column.get(name, {}).get("last")]
    return mean(values) if values else -1.0


def _cell(row: Tree | None) -> str:
    if row is None:
        return "–"
    if row["failed"]:
        return "failed"
    text = _number(row["last"])
    return f"**{text}**" if row["tie"] or row["behind"] == 0.0 else text


def _number(values: Sequence[float] | None) -> str:
    """Shares as per cent, with their spread where there is one."""
    if not values:
        return "–"
    spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{spread}"
