"""The charts of a run, each with its title, what it shows, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from rte.report.page import charts, curves
from rte.report.page.curves import Series
from rte.report.page.material import Material

SHOWN = 20
"""Classes of a matrix, and bars of a chart: more cannot be read."""
TERMS = {
    "loss": ("Objective", "What training minimises: all terms together."),
    "task": ("Task loss", "The loss against the given labels."),
    "jsd": ("Jensen-Shannon term", "How much the predictions for several views of an example differ."),
    "ecr": ("Ensemble consistency", "How much the student differs from its teacher."),
    "noise": ("Estimated noise", "The share of wrong labels, as the method estimates it while it trains."),
    "q": ("q", "Of the loss L_q: 0 is cross-entropy, 1 the mean absolute error, which wrong labels disturb least."),
    "lr": ("Learning rate", "What the optimiser's steps are scaled by."),
}
"""Title and meaning of what many methods journal."""


@dataclass(frozen=True)
class Panel:
    """A chart; `legend` has the name and the colour of its series, `header` and `rows` are its numbers."""

    title: str
    about: str
    picture: Markup
    legend: Sequence[tuple[str, int]] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default_factory=list)
    kind: str = ""


def training(runs: Sequence[Material]) -> list[Panel]:
    """Accuracy and every term of the journal; of several runs, one curve each."""
    many = len(runs) > 1
    panels = []
    scores = [curves.accuracies(m.journal) for m in runs]
    # of several runs, what is reported of each: the rest stands in their own charts
    first = [Series(m.name, of[0].x, of[0].y, k) for k, (m, of) in enumerate(zip(runs, scores, strict=True)) if of]
    shown = first if many else scores[0]
    if any(len(s.x) > 1 for s in shown):
        about = "Share right after each evaluation."
        if not many and any(s.name == "student" for s in shown):
            about += " The teacher is the moving average of the student's weights."
        panels.append(_lines("Accuracy", about, shown, charts.percent, many=many))
    found = [{s.name: s for s in curves.terms(m.journal)} for m in runs]
    for name in dict.fromkeys(name for of in found for name in of):
        drawn = [
            Series(m.name if many else name, of[name].x, of[name].y, k)
            for k, (m, of) in enumerate(zip(runs, found, strict=True))
            if name in of
        ]
        panels.append(_lines(*TERMS.get(name, (name, "As the method recorded it.")), drawn, charts.short, many=many))
    return panels


def labels(m: Material) -> Iterator[Panel]:
    """What the audit found: the noise matrix, the classes, the pairs, the losses."""
    if m.audit is None:
        return
    summary, names = m.audit.summary, m.audit.classes
    if summary["pairs"]:
        rows = [(f"{p['given']} → {p['suggested']}", p["count"], f"{p['count']:,}") for p in summary["pairs"][:12]]
        yield Panel(
            "What is taken for what",
            "The most frequent pairs among the suspects: the label → what the example seems to be.",
            charts.bars(rows, "Bars: the most frequent pairs of given and suggested label"),
            header=("label", "suggested", "suspects"),
            rows=[(p["given"], p["suggested"], f"{p['count']:,}") for p in summary["pairs"]],
        )
    yield _classes(summary["per_class"])
    if summary.get("matrix") and len(names) <= SHOWN:
        yield _matrix(
            "Estimated noise",
            "Of each class, how its examples are labelled. Off the diagonal are the mistakes.",
            np.array(summary["matrix"]),
            names,
            "class",
            "label",
        )
    elif summary.get("matrix"):
        yield _strongest(np.array(summary["matrix"]), names, "Estimated noise", "class", "label")
    elif summary.get("strongest"):
        rows = [(f"{p['true']} → {p['given']}", p["p"], charts.percent(p["p"])) for p in summary["strongest"][:SHOWN]]
        yield Panel(
            "Estimated noise",
            "The strongest entries of the noise matrix: class → label, as a share of the class.",
            charts.bars(rows, "Bars: the strongest entries of the estimated noise matrix"),
            header=("class → label", "share"),
            rows=[(name, words) for name, _, words in rows],
        )
    if losses := m.measured.get("losses"):
        yield _losses("Loss of believed and doubted labels", "By what the audit says.", losses, ("believed", "doubted"))
    if truth := m.measured.get("truth"):
        yield _losses("Loss of right and wrong labels", "By the true labels, known here.", truth, ("right", "wrong"))


def predictions(m: Material) -> Iterator[Panel]:
    """What predictions are worth: calibration, confusions, corruptions."""
    if diagram := m.measured.get("reliability"):
        yield _reliability(diagram)
    counts = np.array(m.measured.get("confusion") or [])
    if counts.size:
        names = m.audit.classes if m.audit is not None else tuple(map(str, range(len(counts))))
        table = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        if len(names) <= SHOWN:
            about = "Of the test examples of each class, how they are predicted."
            yield _matrix("Confusions", about, table, names, "class", "predicted")
        else:
            yield _strongest(table, names, "Confusions", "class", "predicted")
    if errors := m.corruptions.get("errors"):
        rows = [
            (name.replace("_", " "), float(np.mean(of)), charts.percent(float(np.mean(of))))
            for name, of in errors.items()
        ]
        yield Panel(
            "Errors on corrupted images",
            f"Mean over five severities. Mean corruption error: {charts.percent(m.corruptions['mce'])}.",
            charts.bars(rows, "Bars: the error on each corruption"),
            header=("corruption", "1", "2", "3", "4", "5"),
            rows=[(name.replace("_", " "), *map(charts.percent, of)) for name, of in errors.items()],
        )


def _lines(title: str, about: str, series: list[Series], words: charts.Words, *, many: bool) -> Panel:
    ends = "; ".join(f"{s.name} ends at {words(float(s.y[-1]))}" for s in series)
    header = ("epoch", *(s.name for s in series))
    grid = sorted({float(x) for s in series for x in s.x})
    grid = [grid[k] for k in np.unique(np.linspace(0, len(grid) - 1, min(len(grid), 12)).astype(int))]
    rows = [(charts.short(x), *(words(float(np.interp(x, s.x, s.y))) for s in series)) for x in grid]
    marks = [k if s.mark is None else s.mark for k, s in enumerate(series)]
    legend = list(zip([s.name for s in series], marks, strict=True)) if many or len(series) > 1 else []
    return Panel(
        title, about, charts.line(series, f"Curve: {title} over epochs; {ends}", words=words), legend, header, rows
    )


def _classes(rows: list[dict[str, Any]]) -> Panel:
    worst = sorted(rows, key=lambda row: -row["rate"])
    bars = [(row["class"], row["rate"], charts.percent(row["rate"])) for row in worst[:SHOWN]]
    about = "Estimated share of wrong labels among all that carry each label, with its interval."
    if len(rows) > SHOWN:
        about += f" The {SHOWN} classes with the most."
    return Panel(
        "Wrong labels by class",
        about,
        charts.bars(bars, f"Bars: {about}", spans=[(row["low"], row["high"]) for row in worst[:SHOWN]]),
        header=("label", "examples", "suspects", "wrong", "interval"),
        rows=[
            (
                row["class"],
                f"{row['given']:,}",
                f"{row['issues']:,}",
                charts.percent(row["rate"]),
                f"{charts.percent(row['low'])} to {charts.percent(row['high'])}",
            )
            for row in worst
        ],
    )


def _matrix(title: str, about: str, table: curves.Floats, names: Sequence[str], rows: str, columns: str) -> Panel:
    picture = charts.matrix(table, names, f"Matrix: {about}", rows=rows, columns=columns, words=charts.percent)
    body = [(name, *(charts.percent(float(v)) for v in row)) for name, row in zip(names, table, strict=True)]
    return Panel(title, about, picture, header=(f"{rows} \\ {columns}", *names), rows=body, kind="square")


def _strongest(table: curves.Floats, names: Sequence[str], title: str, rows: str, columns: str) -> Panel:
    off = table * (1 - np.eye(len(table)))
    places = [divmod(int(j), len(names)) for j in np.argsort(-off, axis=None, kind="stable")[:SHOWN]]
    bars = [(f"{names[a]} → {names[b]}", float(off[a, b]), charts.percent(float(off[a, b]))) for a, b in places]
    about = f"The {len(bars)} largest mistakes: {rows} → {columns}, as a share of the {rows}."
    picture = charts.bars(bars, f"Bars: {about}")
    return Panel(title, about, picture, header=(f"{rows} → {columns}", "share"), rows=[(n, w) for n, _, w in bars])


def _losses(title: str, about: str, found: dict[str, Any], names: Sequence[str]) -> Panel:
    total = {name: max(1, sum(found[name]["count"])) for name in names}
    groups = [(name, [count / total[name] for count in found[name]["count"]]) for name in names]
    edges = found["edges"]
    middle = {name: found[name]["median"] for name in names}
    text = "; ".join(f"{name}: median {charts.short(value)}" for name, value in middle.items() if value is not None)
    ends = [f"{charts.short(edges[k])} to {charts.short(edges[k + 1])}" for k in range(len(edges) - 1)]
    body = [(end, *(f"{found[name]['count'][k]:,}" for name in names)) for k, end in enumerate(ends)]
    return Panel(
        title,
        f"{about} Loss is -log of the given label's probability; the last bin holds all above. Shares of each group.",
        charts.steps(edges, groups, f"Histogram: {title}; {text}", "loss"),
        [(name, k) for k, name in enumerate(names)],
        ("loss", *names),
        body,
    )


def _reliability(diagram: dict[str, Any]) -> Panel:
    edges, accuracy, count = diagram["edges"], diagram["accuracy"], diagram["count"]
    about = (
        "Of the test predictions with some confidence, the share that is right. On the line both agree. Bars above "
        "it: too modest; below: too sure. Wide bars hold more examples. Calibration error: "
        f"{charts.percent(diagram['ece'])}."
    )
    rows = [
        (f"{charts.percent(edges[k])} to {charts.percent(edges[k + 1])}", charts.percent(value), f"{count[k]:,}")
        for k, value in enumerate(accuracy)
        if value is not None
    ]
    picture = charts.reliability(edges, accuracy, count, f"Reliability diagram: {about}")
    return Panel("Confidence and accuracy", about, picture, header=("confidence", "right", "examples"), rows=rows)
