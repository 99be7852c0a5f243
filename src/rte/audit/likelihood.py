"""The noise under which the given labels are most likely, where predictions are right but for their sharpness.

P(given y | x) = sum_c p_b(c | x) F[c, y],    p_b(c | x) = p(c | x)^b / sum

F (K, K) by expectation maximisation for each sharpness b of a grid; the b of the largest likelihood counts. Of each
prediction the most probable classes and the given label are known. The others share what is left evenly, and say
nothing of the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.audit.evidence import Evidence

SHARPNESS = (0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)
ROUNDS = 40
MOST = 20_000
"""Examples that are looked at to choose the sharpness."""
SMALLEST = 1e-12
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """F[a, b] = P(given b | true a), the share of each class among the true labels, and P(given label right) (N,)."""

    matrix: Matrix
    prior: Matrix
    right: Matrix
    likelihood: float
    sharpness: float


def fit(e: Evidence) -> Fit:
    """The matrix under the sharpness of the largest likelihood."""
    n = len(e)
    some = np.arange(n) if n <= MOST else np.linspace(0, n - 1, MOST).astype(np.int64)
    classes, p = candidates(e)
    tried = [_maximise(classes[some], p[some], e.y[some], e.classes, b) for b in SHARPNESS]
    best = max(tried, key=lambda one: one.likelihood)
    return best if n <= MOST else _maximise(classes, p, e.y, e.classes, best.sharpness)


def candidates(e: Evidence) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The classes that may be true (N, M + 1) with their probabilities: the most probable, and the given label last.

    Where that is one of the former, its last place has probability 0.
    """
    known = (e.top == e.y[:, None]).any(1)
    last = np.where(known, 0.0, e.p_given)
    return np.column_stack([e.top, e.y]).astype(np.int32), np.column_stack([e.top_p, last]).astype(np.float32)


def _maximise(
    classes: NDArray[np.int32], p: NDArray[np.float32], y: NDArray[np.int64], k: int, sharpness: float
) -> Fit:
    shares = np.where(p > 0, np.maximum(p, SMALLEST).astype(np.float64) ** sharpness, 0.0)
    others = np.maximum(1, k - (p > 0).sum(1))
    rest = others * (np.maximum(1.0 - p.sum(1, dtype=np.float64), 0.0) / others) ** sharpness
    whole = shares.sum(1) + rest
    shares, rest = shares / whole[:, None], rest / whole
    matrix = np.full((k, k), 0.2 / max(1, k - 1))
    np.fill_diagonal(matrix, 0.8)
    place = classes.astype(np.int64) * k + y[:, None]
    joint, likelihood, believed = matrix, -np.inf, shares
    for _ in range(ROUNDS):
        believed = shares * matrix.ravel()[place]
        total = believed.sum(1) + rest / k
        likelihood = float(np.log(np.maximum(total, SMALLEST)).mean())
        believed /= np.maximum(total, SMALLEST)[:, None]
        joint = np.bincount(place.ravel(), believed.ravel(), k * k).reshape(k, k)
        matrix = (joint + 0.01 / k) / (joint.sum(1, keepdims=True) + 0.01)
    right = np.where(classes == y[:, None], believed, 0.0).sum(1)
    return Fit(matrix, joint.sum(1) / max(1.0, joint.sum()), right, likelihood, sharpness)
