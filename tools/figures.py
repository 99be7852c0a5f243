"""The figures of the page of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from results import has_figure

Tree = dict[str, Any]
OURS, PAPER, GREY = "#c2410c", "#1d4ed8", "#9aa5b1"


def draw(tree: Tree, path: Path) -> bool:
    """The figure of a summary, if it has one."""
    if not has_figure(tree):
        return False
    if tree["table"] == "main":
        figure = effect(tree)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130, metadata={"Software": None})
        return True
    runs = [
        (f"{cell['row']}, {cell['column']}", run)
        for cell in tree["cells"]
        for run in cell["runs"][:1]
        if "losses" in run or "reliability" in run
    ]
    count = len(runs) or len(tree["measures"])
    figure = Figure(figsize=(4.4 * count, 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, count, squeeze=False)[0]
    for panel, (label, run) in zip(panels, runs, strict=False):
        (losses if "losses" in run else reliability)(panel, run)
        panel.set_title(label)
    if not runs:
        for panel, measure in zip(panels, tree["measures"], strict=True):
            sweep(panel, tree, measure)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    return True


COLUMN = "CIFAR-10 80 %"
ROWS = {"CE": ("#9aa5b1", ":"), "GCE": ("#0072b2", "--"), "CE+JSD+ECR": ("#e69f00", "-."), "RTE": ("#c2410c", "-")}
"""What the figure of the main table shows; line and colour of each."""


def effect(tree: Tree) -> Figure:
    """Accuracy over epochs at 80 % noise, and which share of the wrong labels each method has memorised."""
    cells = {cell["row"]: cell for cell in tree["cells"] if cell["column"] == COLUMN and cell["row"] in ROWS}
    figure = Figure(figsize=(8.8, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for row, (colour, line) in ROWS.items():
        runs = [run for run in cells.get(row, {"runs": []})["runs"] if run.get("curve")]
        for number, run in enumerate(runs):
            epochs, values = zip(*run["curve"], strict=True)
            left.plot(epochs, values, line, color=colour, label=row if not number else None)
        kept = [run["memorised"] for run in runs if run.get("memorised") is not None]
        if kept:
            right.barh(row, sum(kept) / len(kept), color=colour)
    left.set(xlabel="epoch", ylabel="test accuracy %", title="80 % of the labels are wrong")
    left.legend(frameon=False)
    right.set(xlabel="wrong labels memorised %")
    right.invert_yaxis()
    return figure


def losses(panel: Any, run: Tree) -> None:
    """Shares of right and wrong labels by loss, on a logarithmic scale: most right ones lie near 0."""
    edges = run["losses"]["edges"]
    for name, colour in (("right", PAPER), ("wrong", OURS)):
        counts = run["losses"][name]["count"]
        total = sum(counts)
        if total:
            panel.stairs(
                [100 * n / total for n in counts], edges, fill=True, alpha=0.5, color=colour, label=f"{name} labels"
            )
    panel.set_yscale("log")
    panel.set_xlabel("loss against the given label (last bar: and above)")
    panel.set_ylabel("% of these labels")
    panel.legend(frameon=False)


def reliability(panel: Any, run: Tree) -> None:
    """Accuracy by confidence; on the line, a confidence is what it says."""
    bins = run["reliability"]
    panel.stairs([a or 0.0 for a in bins["accuracy"]], bins["edges"], fill=True, color=PAPER, alpha=0.6)
    panel.plot([0, 1], [0, 1], color="black", linewidth=1)
    panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
    panel.text(0.04, 0.92, f"ECE {100 * bins['ece']:.1f} %")


def sweep(panel: Any, tree: Tree, measure: str) -> None:
    """The paper's numbers and ours over the columns; each on its own axis, as the sizes differ."""
    names = [cell["column"].split()[-1] for cell in tree["cells"]]
    paper = [cell["paper"].get(measure) for cell in tree["cells"]]
    ours = [cell["ours"].get(measure, {}).get("mean") for cell in tree["cells"]]
    other = panel.twinx()
    panel.plot(range(len(names)), [float("nan") if v is None else v for v in ours], "o-", color=OURS)
    other.plot(range(len(names)), [float("nan") if v is None else v for v in paper], "s--", color=PAPER)
    panel.set_xticks(range(len(names)), names)
    panel.set_xlabel(" ".join(tree["cells"][0]["column"].split()[:-1]).removesuffix(" ="))
    panel.set_ylabel(f"{measure} %, ours", color=OURS)
    other.set_ylabel(f"{measure} %, paper", color=PAPER)
