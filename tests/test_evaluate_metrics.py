"""Accuracy and likelihood against slow references, ties and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rte.errors import DataError, TrainingError
from rte.evaluate.calibration import expected_calibration_error
from rte.evaluate.metrics import last5, nll, score, summarise, top_k


def example(seed: int, n: int = 60, k: int = 8, scale: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0, scale, (n, k)).astype(np.float32), rng.integers(0, k, n)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 20])
def test_all_scores_against_slow_references(k: int) -> None:
    logits, y = example(k, k=k)
    found = score(logits, y)
    assert list(found) == ["top1", "top5", "nll", "ece"]
    assert found["top1"] == top_k(logits, y, 1) == oracles.top_k_share(logits.tolist(), y.tolist(), 1)
    assert found["top5"] == top_k(logits, y, 5) == oracles.top_k_share(logits.tolist(), y.tolist(), 5)
    assert found["nll"] == pytest.approx(oracles.mean_nll(logits.tolist(), y.tolist()), rel=1e-13)
    assert found["nll"] == pytest.approx(nll(logits, y), rel=1e-13)
    probs = oracles.softmax_rows(logits.tolist())
    assert found["ece"] == pytest.approx(oracles.calibration_gap(probs, y.tolist(), 15), abs=1e-12)
    assert found["ece"] == pytest.approx(expected_calibration_error(probs, y), abs=1e-12)
    assert all(type(value) is float for value in found.values())


@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(1, 8))
def test_ties_go_to_the_lower_class_as_in_argmax(seed: int, classes: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    logits, y = rng.integers(0, 3, (20, classes)), rng.integers(0, classes, 20)
    assert top_k(logits, y, k) == oracles.top_k_share(logits.tolist(), y.tolist(), k)
    assert top_k(logits, y, 1) == (logits.argmax(axis=1) == y).mean()


def test_a_network_that_says_nothing_is_not_right() -> None:
    y = np.arange(10)
    found = score(np.zeros((10, 10)), y)
    assert (found["top1"], found["top5"]) == (0.1, 0.5)
    assert found["nll"] == pytest.approx(np.log(10))
    assert found["ece"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_top5_of_five_classes_or_fewer_is_one(k: int) -> None:
    logits, y = example(0, k=k)
    assert score(logits, y)["top5"] == 1.0
    assert top_k(logits, y, 100) == 1.0


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_large_logits_do_not_overflow(shift: float) -> None:
    logits = np.array([[1e4, 0.0], [0.0, 1e4]]) + shift
    found = score(logits, np.array([0, 0]))
    assert found["nll"] == pytest.approx(5000.0)
    assert found["ece"] == pytest.approx(0.5)
    assert found["top1"] == 0.5


def test_the_scale_of_a_sure_prediction_survives() -> None:
    """-log p_y = log(1 + exp(-30)) is lost in float32, and in 1 - p."""
    assert nll(np.array([[30.0, 0.0]], np.float32), [0]) == pytest.approx(np.log1p(np.exp(-30.0)), rel=0.02)


def test_a_class_that_is_ruled_out() -> None:
    logits = np.array([[0.0, -np.inf, 0.0]])
    assert nll(logits, [0]) == pytest.approx(np.log(2))
    assert nll(logits, [1]) == np.inf


def test_half_precision_and_integers_are_taken() -> None:
    logits = np.array([[2, 0], [0, 1]])
    for dtype in (np.float16, np.float32, np.float64, np.int32):
        assert nll(logits.astype(dtype), [0, 1]) == pytest.approx(oracles.mean_nll(logits.tolist(), [0, 1]), rel=1e-13)


def test_logits_are_not_changed() -> None:
    logits, y = example(1)
    before = logits.copy()
    score(logits, y)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_broken_outputs_name_the_example(broken: float) -> None:
    logits, y = example(2)
    logits[7, 3] = broken
    for measure in (score, nll, top_k):
        with pytest.raises(TrainingError, match="outputs for example 7 are not finite"):
            measure(logits, y)


@pytest.mark.parametrize(
    ("logits", "y", "reason"),
    [
        (np.zeros(3), [0], r"shape \(3,\); give numbers of shape \(N, K\)"),
        (np.zeros((2, 3)), [0], r"shape \(1,\) for 2 logits"),
        (np.zeros((2, 3)), [0.0, 1.0], "labels have dtype float64"),
        (np.zeros((2, 3)), [0, 3], "label 3 of example 1 is none of the 3 classes"),
        (np.zeros((2, 3)), [-1, 0], "label -1 of example 0"),
        (np.zeros((0, 3)), np.zeros(0, int), "no examples to measure"),
        ([["a", "b"]], [0], "logits have dtype"),
    ],
)
def test_arrays_that_do_not_fit(logits: Any, y: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        score(logits, y)


def test_top_zero_is_refused() -> None:
    with pytest.raises(DataError, match="top-0 accuracy"):
        top_k(np.zeros((1, 2)), [0], 0)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([0.5], {"last": 0.5, "last5": 0.5, "best": 0.5}),
        ([0.2, 0.6], {"last": 0.6, "last5": 0.4, "best": 0.6}),
        ([0.9, 0.1, 0.2, 0.3, 0.4, 0.5], {"last": 0.5, "last5": 0.3, "best": 0.9}),
    ],
)
def test_last_last5_best(history: list[float], expected: dict[str, float]) -> None:
    assert summarise(history) == pytest.approx(expected)
    assert last5(history) == pytest.approx(expected["last5"])


def test_nothing_to_summarise() -> None:
    with pytest.raises(DataError, match="no evaluations to summarise"):
        summarise([])
