"""Charts: round ticks, points inside the frame, names as text, and curves thinned without a bias."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rte.report.page import charts, curves
from rte.report.page.curves import Series


@pytest.mark.parametrize(("least", "step"), [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (60.0, 100.0), (0.002, 0.002)])
def test_steps_between_ticks_are_round(least: float, step: float) -> None:
    assert charts.nice(least) == pytest.approx(step)


def test_ticks_lie_in_the_range() -> None:
    ticks = charts.Scale(0.13, 0.97, 0, 100).ticks()
    assert ticks == pytest.approx([0.2, 0.4, 0.6, 0.8])


@pytest.mark.parametrize("values", [[1.0, 2.0, 5.0], [0.0], [-3.0, -3.0], [1e-9, 1e9], [5.0, float("nan"), 7.0]])
def test_points_stay_inside_the_frame(values: list[float]) -> None:
    text = charts.line([Series("s", np.arange(float(len(values))), np.array(values))], "label")
    for x, y in re.findall(r"([\d.-]+),([\d.-]+)", re.search(r'points="([^"]*)"', text)[1]):  # type: ignore[index]
        assert charts.LEFT <= float(x) <= charts.WIDTH - charts.RIGHT
        assert 0 <= float(y) <= charts.HEIGHT - charts.BOTTOM


def test_names_are_escaped_everywhere() -> None:
    bad = '"><script>x</script>'
    share = np.full((2, 2), 0.5)
    made = [
        charts.bars([(bad, 1.0, bad)], bad, spans=[(0.5, 1.5)]),
        charts.matrix(share, [bad, bad], bad, rows=bad, columns=bad, words=charts.percent),
        charts.line([Series(bad, np.arange(3.0), np.arange(3.0))], bad, x_title=bad),
        charts.steps([0, 1, 2], [(bad, [0.1, 0.9])], bad, bad),
        charts.reliability([0, 0.5, 1], [None, 0.5], [0, 3], bad),
    ]
    for text in made:
        assert "<script" not in text
        assert text.count('aria-label="&#34;&gt;') == 1


def test_thinned_curves_keep_their_mean() -> None:
    x = np.arange(1000.0)
    short_x, short_y = curves.thinned(x, x**2, most=100)
    assert len(short_x) == 100
    assert short_y.mean() == pytest.approx((x**2).mean())


def test_terms_come_in_order_and_lie_at_their_epochs() -> None:
    journal = [
        {"event": "step", "epoch": 0, "step": 5, "seconds": 1, "lr": 0.1, "own": 2.0, "loss": 1.0, "q": 0.5},
        {"event": "epoch", "epoch": 1, "step": 10, "test": {"top1": 0.5}, "student": {"top1": 0.4}},
        {"event": "step", "epoch": 1, "step": 15, "seconds": 2, "lr": 0.1, "own": None, "loss": 0.5, "q": 0.5},
    ]
    found = curves.terms(journal)
    assert [series.name for series in found] == ["loss", "own", "q", "lr"]
    assert found[0].x == pytest.approx([0.5, 1.5])
    assert found[1].y == pytest.approx([2.0])
    assert [series.name for series in curves.accuracies(journal)] == ["teacher", "student"]


def test_an_unfinished_first_epoch_has_curves() -> None:
    journal = [{"event": "step", "epoch": 0, "step": s, "seconds": 1, "loss": 1.0} for s in (20, 40)]
    assert curves.terms(journal)[0].x == pytest.approx([0.5, 1.0])
