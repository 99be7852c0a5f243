"""Does a confidence of 80 % mean right in 80 % of cases? Reliability diagrams and the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.errors import DataError
from rte.evaluate.inputs import rows_and_labels

Floats = NDArray[np.float64]
BINS = 15


@dataclass(frozen=True)
class Reliability:
    """Per bin of confidence (low, high]: mean confidence, accuracy, number of examples; NaN where a bin is empty."""

    edges: Floats
    confidence: Floats
    accuracy: Floats
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Expected calibration error: sum over bins of count/N * |accuracy - confidence|."""
        filled = self.count > 0
        gap = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float((self.count[filled] * gap).sum() / self.count.sum())


def binned(confidence: Floats, right: NDArray[np.bool_], bins: int = BINS) -> Reliability:
    """Confidences (N,) and whether each prediction was right (N,), in bins of equal width over 0..1."""
    if bins < 1:
        raise DataError(f"the number of bins is {bins}; give at least 1.")
    edges = np.linspace(0.0, 1.0, bins + 1)
    at = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    count = np.bincount(at, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(at, weights=confidence, minlength=bins) / count
        accuracy = np.bincount(at, weights=right, minlength=bins) / count
    return Reliability(edges, mean, accuracy, count)


def reliability(probs: ArrayLike, y: ArrayLike, bins: int = BINS) -> Reliability:
    """The reliability diagram of probabilities (N, K) and labels (N,); confidence is the largest probability."""
    table, y = rows_and_labels(probs, y, "probabilities")
    sums = table.sum(axis=1, dtype=np.float64)
    if not (table.min() >= 0 and np.abs(sums - 1.0).max() < 1e-3):
        raise DataError("the rows are no probabilities (from 0 up, summing to 1); apply softmax to logits first.")
    return binned(table.max(axis=1).astype(np.float64), table.argmax(axis=1) == y, bins)


def expected_calibration_error(probs: ArrayLike, y: ArrayLike, bins: int = BINS) -> float:
    """Mean gap between confidence and accuracy over bins of equal width, weighted by the examples in each."""
    return reliability(probs, y, bins).error
