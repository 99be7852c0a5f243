"""Charts as SVG, drawn once and without scripts. Colours are classes of page.css: it knows light, dark and paper.

Every text goes through `escape`. Series differ in colour and in dashes, so that they can be told apart without colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup, escape

from rte.report.page.curves import Floats, Series

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 32
COLOURS = 8
Words = Callable[[float], str]


@dataclass(frozen=True)
class Scale:
    """Values from low to high become pixels from start to end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers in the range."""
        step = nice((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def nice(least: float) -> float:
    """The first of 1, 2, 5, 10, 20 ... that is not less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= least * (1 - 1e-9))


def short(value: float) -> str:
    """A number with three digits that count."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    if abs(value) >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:.1e}" if abs(value) < 0.001 else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(value: float) -> str:
    """A share as percent."""
    return f"{100 * value:.3g} %"


def line(series: Sequence[Series], label: str, *, x_title: str = "epochs", words: Words = short) -> Markup:
    """Curves over a common range."""
    xs, ys = np.concatenate([s.x for s in series]), np.concatenate([s.y for s in series])
    ys = ys[np.isfinite(ys)]
    x, y = frame(spread(xs), spread(ys))
    parts = [axes(x, y, x_title, words)]
    for place, each in enumerate(series):
        k = place if each.mark is None else each.mark
        finite = np.isfinite(each.y)
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(each.x[finite], each.y[finite], strict=True))
        if finite.sum() == 1:
            a, b = each.x[finite][0], each.y[finite][0]
            parts.append(Markup('<circle class="f{}" cx="{}" cy="{}" r="3"/>').format(k % COLOURS, r(x(a)), r(y(b))))
        parts.append(Markup('<polyline class="line s{}" points="{}"/>').format(k % COLOURS, points))
    return svg(parts, label)


def steps(edges: Sequence[float], groups: Sequence[tuple[str, Sequence[float]]], label: str, x_title: str) -> Markup:
    """Histograms as shares of each group, one above the other, filled lightly."""
    high = max((max(values) for _, values in groups), default=1.0) or 1.0
    x, y = frame((edges[0], edges[-1]), (0.0, high))
    parts = [axes(x, y, x_title, percent)]
    for k, (_, values) in enumerate(groups):
        points = [(edges[0], 0.0)]
        for (a, b), value in zip(pairwise(edges), values, strict=True):
            points += [(a, value), (b, value)]
        points.append((edges[-1], 0.0))
        text = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(Markup('<polygon class="area f{0} s{0}" points="{1}"/>').format(k, text))
    return svg(parts, label)


def reliability(edges: Sequence[float], accuracy: Sequence[float | None], count: Sequence[float], label: str) -> Markup:
    """Accuracy in bins of confidence against the diagonal; wider bars hold more examples."""
    x, y = frame((0.0, 1.0), (0.0, 1.0))
    parts = [axes(x, y, "confidence", percent)]
    most = max(max(count), 1)
    for (a, b), value, n in zip(pairwise(edges), accuracy, count, strict=True):
        if value is None:
            continue
        full = x(b) - x(a) - 2
        width = max(3.0, full * math.sqrt(n / most))
        middle = (x(a) + x(b)) / 2
        text = f"confidence {percent(a)} to {percent(b)}: right in {percent(value)} of {n:,.0f}"
        parts.append(
            Markup('<rect class="f0 bar" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                r(middle - width / 2), r(y(value)), r(width), r(y(0.0) - y(value)), text
            )
        )
    parts.append(
        Markup('<line class="ideal" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(*map(r, (x(0), y(0), x(1), y(1))))
    )
    return svg(parts, label)


def matrix(table: Floats, names: Sequence[str], label: str, *, rows: str, columns: str, words: Words) -> Markup:
    """A square table (K, K) of shares. The largest off the diagonal is darkest; the diagonal has its own colour."""
    k = len(names)
    cell, left, top = max(17, min(32, 340 // k)), 76, 78
    size = k * cell
    most = float((table * (1 - np.eye(k))).max(initial=0.0)) or 1.0
    parts: list[Markup] = []
    for a, name in enumerate(names):
        middle = a * cell + cell / 2 + 4
        cut = clipped(name, 12)
        parts.append(Markup('<text class="name" x="{}" y="{}">{}</text>').format(left - 6, r(top + middle), cut))
        at = f"translate({r(left + middle)} {top - 6}) rotate(-50)"
        parts.append(Markup('<text class="up" transform="{}">{}</text>').format(at, cut))
        for b, other in enumerate(names):
            value = float(table[a, b])
            kind, depth = ("heat", value / most) if a != b else ("heat own", 0.6 * value)
            place = left + b * cell, top + a * cell
            text = f"{rows} {name}, {columns} {other}: {words(value)}"
            parts.append(
                Markup(
                    '<rect class="{}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{}"><title>{}</title></rect>'
                ).format(kind, *place, cell - 1, cell - 1, r(min(1.0, depth), 3), text)
            )
            if cell >= 24 and value >= 0.005:
                strong = "in strong" if a != b and depth > 0.55 else "in"
                x, y = place[0] + cell / 2 - 0.5, place[1] + cell / 2 + 3.5
                parts.append(
                    Markup('<text class="{}" x="{}" y="{}">{}</text>').format(strong, r(x), r(y), f"{100 * value:.0f}")
                )
    parts.append(
        Markup('<text class="axis" x="4" y="14">{}</text>').format(f"row: {rows}, column: {columns}, % of the row")
    )
    return svg(parts, label, left + size + 24, top + size + 6)


def bars(rows: Sequence[tuple[str, float, str]], label: str, *, spans: Sequence[tuple[float, float]] = ()) -> Markup:
    """A bar for each (name, value, words), from 0; `spans` are intervals."""
    line_height, left, right = 22, 142, 56
    ends = [value for _, value, _ in rows] + [high for _, high in spans]
    x = Scale(0.0, max([*ends, 1e-9]), left, WIDTH - right)
    parts: list[Markup] = []
    for k, (name, value, words) in enumerate(rows):
        top = 4 + k * line_height
        parts.append(
            Markup('<text class="name" x="{}" y="{}"><title>{}</title>{}</text>').format(
                left - 6, top + 13, name, clipped(name, 24)
            )
        )
        parts.append(
            Markup('<rect class="f0 bar" x="{}" y="{}" width="{}" height="14"/>').format(
                left, top + 2, r(max(1.0, x(value) - left))
            )
        )
        if spans:
            low, high = (r(x(end)) for end in spans[k])
            y = top + 9
            parts.append(
                Markup('<path class="span" d="M{0} {2}H{1}M{0} {3}v6M{1} {3}v6"/>').format(low, high, y, y - 3)
            )
        end = x(max(value, spans[k][1] if spans else 0.0))
        parts.append(Markup('<text class="value" x="{}" y="{}">{}</text>').format(r(end + 6), top + 13, words))
    return svg(parts, label, WIDTH, 8 + len(rows) * line_height)


def frame(xs: tuple[float, float], ys: tuple[float, float]) -> tuple[Scale, Scale]:
    """The scales of a chart of the usual size."""
    return Scale(*xs, LEFT, WIDTH - RIGHT), Scale(*ys, HEIGHT - BOTTOM, TOP)


def axes(x: Scale, y: Scale, x_title: str, words: Words) -> Markup:
    """Lines across at round values of y, and what stands below."""
    parts: list[Markup] = []
    for value in y.ticks(4):
        at = y(value)
        parts.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - RIGHT, r(at), r(at))
        )
        parts.append(Markup('<text class="y" x="{}" y="{}">{}</text>').format(LEFT - 6, r(at + 3.5), words(value)))
    own = percent if x.high <= 1.0 and words is percent else short
    below = Markup('<text class="x" x="{}" y="{}">{}</text>')
    parts += [below.format(r(x(value)), HEIGHT - BOTTOM + 14, own(value)) for value in x.ticks(5)]
    parts.append(
        Markup('<text class="axis x" x="{}" y="{}">{}</text>').format((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, x_title)
    )
    return Markup("").join(parts)


def spread(values: Floats) -> tuple[float, float]:
    """The range of some values, never empty; from 0 where it is near."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if 0 < low < 0.5 * high:
        low = 0.0
    if high - low < 1e-9 * max(1.0, abs(high)):
        room = 0.5 * abs(high) or 0.5
        return low - room, high + room
    return low, high + 0.02 * (high - low)


def svg(parts: Iterable[Markup], label: str, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    """The picture, and in words what it shows."""
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">{}</svg>').format(
        r(width), r(height), label, Markup("").join(parts)
    )


def clipped(text: str, most: int) -> Markup:
    """A name that may be too long for its place."""
    return escape(text if len(text) <= most else text[: most - 1] + "…")


def r(value: float, digits: int = 1) -> str:
    """A coordinate, short."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
