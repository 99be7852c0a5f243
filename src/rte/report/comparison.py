"""A comparison of methods as a table for the terminal, as a page, and as a figure of accuracy over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.table import Table

from rte.compare.summary import Figures, Row, measure
from rte.train import journal

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")
"""Told apart by colour-blind people too; then the same again with other dashes."""
DASHES = ("-", "--", ":", "-.")
POINTS = 60
"""Of a curve, between the first and the last evaluation."""
MANY = 16
"""Methods from which on the legend takes two columns."""


def table(title: str, rows: Sequence[Row]) -> Table:
    """One row per method, the best one in bold."""
    out = Table(title=title, caption=caption(rows))
    columns = _columns(rows)
    for name, _ in columns:
        out.add_column(name, justify="left" if name == "method" else "right")
    for row in rows:
        out.add_row(*(cell(row) for _, cell in columns), style="bold" if row.behind == 0 else "")
    return out


def page(title: str, rows: Sequence[Row], command: str) -> str:
    """The same table in Markdown, with the command that made it."""
    columns = _columns(rows)
    lines = [f"# {title}", "", f"    {command}", "", "| " + " | ".join(name for name, _ in columns) + " |"]
    lines.append("|" + "|".join("---" if name == "method" else "---:" for name, _ in columns) + "|")
    for row in rows:
        cells = [cell(row) for _, cell in columns]
        lines.append("| " + " | ".join(f"**{c}**" if row.behind == 0 else c for c in cells) + " |")
    return "\n".join([*lines, "", caption(rows), "", "![accuracy over time](comparison.png)", ""])


def caption(rows: Sequence[Row]) -> str:
    """How the table is to be read."""
    known = {name for row in rows for name in row.figures}
    seeds = max(len(row.folders) for row in rows)
    parts = [
        "last: accuracy on the test set after the last epoch"
        if measure(rows) == "last"
        else "held out: accuracy on held-out noisy labels"
    ]
    if "selected" in known:
        parts.append("chosen: of the epoch that is best on held-out noisy labels")
    if "memorised" in known:
        parts.append("memorised: wrong training labels that are predicted")
    if any(row.factor not in (None, 1.0) for row in rows):
        parts.append("rate: factor of the learning rate, chosen on held-out noisy labels")
    parts.append(
        "one seed: a difference of a point or two may be chance, give --seeds 3"
        if seeds == 1
        else f"mean ± standard deviation over {seeds} seeds; tie: behind by less than the spread of the difference"
    )
    return "; ".join(parts) + "."


def _columns(rows: Sequence[Row]) -> list[tuple[str, Callable[[Row], str]]]:
    """(heading, cell of a row) of everything that is known."""
    known = {name for row in rows for name in row.figures}
    columns: list[tuple[str, Callable[[Row], str]]] = [("method", lambda row: row.method)]
    for name, heading in (
        ("last", "last %"),
        ("selected", "chosen %"),
        ("val", "held out %"),
        ("memorised", "memorised %"),
    ):
        if name in known and (name != "val" or measure(rows) == "val"):
            columns.append((heading, lambda row, name=name: _percent(row, name)))  # type: ignore[misc]
    columns.append(("behind", _behind))
    if any(row.factor not in (None, 1.0) for row in rows):
        columns.append(("rate", lambda row: "–" if row.factor is None else f"{row.factor:g}"))
    columns.append(("epochs", lambda row: _number(row, "epochs")))
    columns.append(("s/epoch", _seconds_per_epoch))
    if "memory" in known:
        columns.append(("MB", lambda row: _number(row, "memory", 1e-6)))
    return columns


def _percent(row: Row, name: str) -> str:
    if name not in row.figures:
        return "–"
    found = row.figures[name]
    spread = "" if found.spread is None else f" ± {100 * found.spread:.1f}"
    return f"{100 * found.mean:.1f}{spread}"


def _number(row: Row, name: str, unit: float = 1.0) -> str:
    return f"{unit * row.figures[name].mean:.0f}" if name in row.figures else "–"


def _behind(row: Row) -> str:
    if row.failed:
        return "failed"
    if row.behind is None:
        return "–"
    return "best" if row.behind == 0 else "tie" if row.tie else f"{100 * row.behind:.1f}"


def _seconds_per_epoch(row: Row) -> str:
    seconds, epochs = row.figures.get("seconds"), row.figures.get("epochs")
    if seconds is None or epochs is None:
        return "–"
    return f"{Figures(tuple(s / max(e, 1) for s, e in zip(seconds.values, epochs.values, strict=True))).mean:.2g}"


def draw(rows: Sequence[Row], folder: Path, title: str) -> Figure:
    """Accuracy over training time: a line for each method, and a band of one standard deviation over seeds."""
    by = "test" if measure(rows) == "last" else "val"
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    panel: Any = figure.subplots()
    for k, row in enumerate(row for row in rows if not row.failed):
        time, mean, spread = curve([folder / name for name in row.folders], by)
        style = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k // len(COLOURS) % len(DASHES)]}
        panel.plot(time, 100 * mean, label=row.method, linewidth=2.2 if row.behind == 0 else 1.3, **style)
        panel.fill_between(time, 100 * (mean - spread), 100 * (mean + spread), color=style["color"], alpha=0.12)
    panel.set_xlabel("training time, seconds")
    panel.set_ylabel("test accuracy, %" if by == "test" else "accuracy on held-out noisy labels, %")
    panel.set_title(title)
    panel.grid(alpha=0.25)
    figure.legend(loc="outside right center", frameon=False, ncols=2 if len(rows) > MANY else 1, fontsize="small")
    figure.savefig(folder / "comparison.png", dpi=130, metadata={"Software": None})
    return figure


def curve(runs: Sequence[Path], by: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Training seconds, and mean and standard deviation of the runs' accuracy at these times."""
    events = [[e for e in journal.read(run / "journal.jsonl", "epoch") if by in e] for run in runs]
    times = [np.array([e["seconds"] for e in each]) for each in events]
    scores = [np.array([e[by]["top1"] for e in each]) for each in events]
    first, last = max(each[0] for each in times), min(each[-1] for each in times)
    grid = np.linspace(min(first, last), last, POINTS)
    table = np.stack([np.interp(grid, t, s) for t, s in zip(times, scores, strict=True)])
    return grid, table.mean(0), table.std(0, ddof=1) if len(runs) > 1 else np.zeros(POINTS)
