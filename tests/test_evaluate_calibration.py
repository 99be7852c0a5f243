"""Calibration against a slow reference, and at the edges of its bins."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rte.errors import DataError
from rte.evaluate.calibration import expected_calibration_error, reliability


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 20))
def test_error_against_a_loop(seed: int, k: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    probs, y = rng.dirichlet(np.ones(k) * 0.5, 50), rng.integers(0, k, 50)
    expected = oracles.calibration_gap(probs.tolist(), y.tolist(), bins)
    assert expected_calibration_error(probs, y, bins) == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])
    diagram = reliability(probs, [0, 1, 1, 1], bins=2)
    assert_array_equal(diagram.edges, [0, 0.5, 1])
    assert_array_equal(diagram.count, [1, 3])  # 0.5 lies in (0, 0.5]
    assert_allclose(diagram.confidence, [0.5, (0.9 + 0.8 + 0.6) / 3])
    assert_allclose(diagram.accuracy, [0, 2 / 3])
    assert diagram.error == pytest.approx((1 * 0.5 + 3 * abs(2 / 3 - 2.3 / 3)) / 4)


def test_perfect_and_worst() -> None:
    sure = np.eye(3)
    assert expected_calibration_error(sure, [0, 1, 2]) == 0.0
    assert expected_calibration_error(sure, [1, 2, 0]) == 1.0


def test_empty_bins_are_nan_and_count_for_nothing() -> None:
    diagram = reliability(np.eye(2), [0, 0], bins=4)
    assert_array_equal(diagram.count, [0, 0, 0, 2])
    assert np.isnan(diagram.accuracy[:3]).all()
    assert np.isnan(diagram.confidence[:3]).all()
    assert diagram.error == 0.5


def test_confidence_a_hair_above_one_stays_in_the_last_bin() -> None:
    diagram = reliability(np.array([[np.float32(1.0000001), 0]], np.float32), [0])
    assert diagram.count[-1] == 1


def test_bins_hold_their_upper_edge() -> None:
    tops = np.linspace(0, 1, 16)[8:]
    diagram = reliability(np.stack([tops, 1 - tops], axis=1), np.zeros(8, int), bins=15)
    assert_array_equal(diagram.count, [0] * 7 + [1] * 8)


@pytest.mark.parametrize(
    ("probs", "y", "bins", "reason"),
    [
        ([[2.0, -1.0]], [0], 15, "no probabilities.*apply softmax"),
        ([[2.0, 3.0]], [0], 15, "no probabilities"),
        ([[np.nan, 1.0]], [0], 15, "no probabilities"),
        ([[0.5, 0.5]], [0], 0, "number of bins is 0"),
        ([[0.5, 0.5]], [2], 15, "label 2 of example 0 is none of the 2 classes of the probabilities"),
    ],
)
def test_what_is_no_probability(probs: Any, y: Any, bins: int, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        expected_calibration_error(probs, y, bins)
