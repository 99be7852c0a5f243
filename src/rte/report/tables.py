"""Results as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from rte.report.profiles import Profile

Result = dict[str, Any]


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def heading(result: Result) -> str:
    """Data and noise in words, with the share of labels that really is wrong."""
    noise = result["noise"]
    if noise["name"] == "none":
        return f"{result['data']}, labels as given"
    wrong = noise.get("trained", noise["measured"])  # of the labels trained on; older results have that of all only
    measured = "" if wrong is None else f", {percent(wrong)} % of the labels are wrong"
    return f"{result['data']}, {noise['name']} noise {percent(noise['asked'])} %{measured}"


def scores(result: Result) -> Table:
    """One row per network evaluated."""
    table = Table()
    for name in ("on", "top-1 %", "top-5 %", "NLL", "ECE"):
        table.add_column(name, justify="left" if name == "on" else "right")
    names = {"test": "test (reported)", "student": "test (student)", "val": "held-out noisy labels"}
    for key, value in result.items():
        if isinstance(value, dict) and "nll" in value:
            cells = [percent(value["top1"]), percent(value["top5"]), f"{value['nll']:.3f}", f"{value['ece']:.3f}"]
            table.add_row(names.get(key, f"test ({key})"), *cells)
    return table


def corruption_errors(result: Result) -> Table:
    """One row per corruption, one column per severity, and the mean corruption error."""
    table = Table(title=f"error %; mean corruption error {percent(result['mce'])} %")
    for name in ("corruption", "1", "2", "3", "4", "5", "mean"):
        table.add_column(name, justify="left" if name == "corruption" else "right")
    for name, errors in result["errors"].items():
        table.add_row(name, *(percent(error) for error in errors), percent(sum(errors) / len(errors)))
    return table


WIDE = 140
"""Characters of a terminal that all columns fit into."""
LEGEND = (
    "networks: trained ones + copies that are kept of them. step: what an example costs, relative to ce, with default "
    "settings, from least to most over a run. bytes: kept for each training example beside its label, with 10 classes. "
    "needs: noise rate and matrix are estimated in the run where nobody knows them; trusted examples are named by "
    "train.trusted; hidden layers are missing only where vectors meet a linear layer: --net mlp has some. All methods "
    "train on images and on vectors. reproduced: whether the published numbers were reached here."
)


def methods(found: Sequence[Profile | tuple[str, str]], width: int) -> list[Table | str]:
    """What each method is, costs and needs, and what the words mean: in columns where there is the width for them."""
    names = ("method", "networks", "step", "bytes", "needs", "paper", "reproduced", "what it is")
    if width < WIDE:
        lines = [f"[bold]{name}[/]: {about}\n  {_together(names[1:], cells)}" for name, *cells, about in _rows(found)]
        return [*lines, f"\n{LEGEND}"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, justify="right" if name in ("step", "bytes") else "left", no_wrap=name == "method")
    for name, *cells in _rows(found):
        table.add_row(f"[bold]{name}[/]", *cells)
    return [table, LEGEND]


def _together(names: Sequence[str], cells: Sequence[str]) -> str:
    return "; ".join(f"{name} {cell}" for name, cell in zip(names, cells, strict=False) if cell)


def _rows(found: Sequence[Profile | tuple[str, str]]) -> list[list[str]]:
    rows = []
    for each in found:
        if not isinstance(each, Profile):  # a package's method that cannot be loaded
            rows.append([each[0], *6 * [""], each[1]])
            continue
        least, most = (f"{end:.1f}" for end in each.step)
        copies = f" + {each.copies}" if each.copies else ""
        cells = [f"{each.networks}{copies}", least if least == most else f"{least} to {most}"]
        cells += [f"{each.bytes_per_example:.0f}", ", ".join(each.needs) or "nothing", each.paper or "–"]
        rows.append([each.name, *cells, "yes" if each.reproduced else "no", each.summary])
    return rows
