"""The accuracy on true labels that one on noisy labels implies: the formula, and how often the interval holds."""

from __future__ import annotations

import numpy as np
import pytest

from rte.evaluate.implied import implied_accuracy, sentence, true_accuracy, wilson


@pytest.mark.parametrize("classes", [2, 10, 77])
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.45])
@pytest.mark.parametrize("right", [0.6, 0.9, 1.0])
def test_it_is_the_inverse_of_what_noise_does(classes: int, noise: float, right: float) -> None:
    """Slowly: the chance of each true, predicted and given class, summed."""
    seen = 0.0
    for predicted in range(classes):
        p = right if predicted == 0 else (1 - right) / (classes - 1)  # the true class is 0
        given = 1 - noise if predicted == 0 else noise / (classes - 1)
        seen += p * given
    assert true_accuracy(seen, noise, classes) == pytest.approx(right)


@pytest.mark.parametrize(
    ("right", "noise", "classes", "n"), [(0.75, 0.5, 10, 400), (0.95, 0.2, 3, 150), (0.9, 0.25, 2, 1000)]
)
def test_the_interval_holds_the_truth_nine_times_in_ten(right: float, noise: float, classes: int, n: int) -> None:
    rng, runs, m = np.random.default_rng(0), 2000, 360
    hits, widths = 0, []
    for _ in range(runs):
        wrong = rng.random(n) < noise
        good = rng.random(n) < right
        same = rng.integers(1, classes, n) == 1  # a wrong label names the class of a wrong prediction
        agrees = np.where(good, ~wrong, wrong & same)
        found = implied_accuracy(float(agrees.mean()), n, float((rng.random(m) < noise).mean()), m, classes)
        assert found is not None
        hits += found.low <= right <= found.high
        widths.append(found.high - found.low)
    assert hits / runs >= 0.9
    assert np.mean(widths) < 0.35, "and still says something"


def test_what_cannot_be_told_is_not() -> None:
    assert implied_accuracy(0.1, 400, 0.5, 100, 10) is None, "no better than chance"
    assert implied_accuracy(0.4, 400, 0.5, 100, 2) is None, "labels that say nothing"
    assert implied_accuracy(0.4, 0, 0.5, 100, 10) is None
    assert wilson(0.0, 10)[0] == 0.0


def test_the_sentence() -> None:
    found = implied_accuracy(0.4, 400, 0.5, 360, 10)
    text = sentence(0.4, 400, 0.5, found)
    assert "Of the 400 held-out labels, noisy as they are, 40.0 % are predicted." in text
    assert "78 % of the true labels" in text
    assert "rte audit" in sentence(0.4, 400, None, None)
