"""The figure of the paper's appendix: every searched value over the epochs, for the whole population and the winner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rte.search.space import Choice, Dimension

if TYPE_CHECKING:
    from rte.search.population import Population, Record

TITLES = {
    "train.lr": "learning rate",
    "train.weight_decay": "weight decay",
    "method.q": "$q$",
    "method.jsd_weight": r"$\lambda_{JSD}$",
    "method.ecr_weight": r"$\lambda_{ECR}$",
    "method.views": "$N^*$",
}
OTHERS, WINNER = "#9aa5b1", "#c2410c"


def draw(population: Population, winner: int, path: Path) -> Figure:
    """One panel per searched value: thin lines are the members, the thick one is the lineage of the winner."""
    keys = list(population.space)
    columns = min(3, len(keys))
    rows = -(-len(keys) // columns)
    figure = Figure(figsize=(4.2 * columns, 2.7 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for panel in panels.flat[len(keys) :]:
        panel.remove()
    for key, panel in zip(keys, panels.flat, strict=False):
        for member in range(population.size):
            own = [rung[member] for _, rung in sorted(population.rungs.items()) if member in rung]
            panel.step(*_line(own, key), where="post", color=OTHERS, linewidth=0.7, alpha=0.7)
        line = _line(population.lineage(winner), key)
        panel.step(*line, where="post", color=WINNER, linewidth=2.0, label=f"lineage of the winner, member {winner}")
        panel.set_title(TITLES.get(key, key))
        panel.set_ylim(*_limits(population.space[key]))
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    for panel in panels.flat[max(0, len(keys) - columns) : len(keys)]:  # the lowest of each column
        panel.set_xlabel("epoch")
        panel.xaxis.set_tick_params(labelbottom=True)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", frameon=False)
    figure.savefig(path, dpi=150)
    return figure


def _limits(dimension: Dimension) -> tuple[float, float]:
    """All that could have been chosen, with a little room around it."""
    low, high = (
        (min(dimension.values), max(dimension.values))
        if isinstance(dimension, Choice)
        else (dimension.low, dimension.high)
    )
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room


def _line(records: Sequence[Record], key: str) -> tuple[list[int], list[float]]:
    """The corners of a line that keeps each value until the next interval begins."""
    last = records[-1]
    return [*(r.start for r in records), last.until], [*(r.values[key] for r in records), last.values[key]]
