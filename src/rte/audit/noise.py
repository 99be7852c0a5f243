"""How many labels are wrong, and which classes are taken for which: a rate and a matrix, each with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.audit.evidence import Evidence

LEVEL = 0.9
MOST = 200
"""Of more classes, the matrix is not written out, only its strongest entries."""
STRONGEST = 500

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """rate, low, high; F[a, b] = P(given b | true a) with low and high; per given class the share that is wrong."""

    rate: float
    low: float
    high: float
    matrix: Matrix
    matrix_low: Matrix
    matrix_high: Matrix
    class_rate: Matrix
    class_low: Matrix
    class_high: Matrix
    counts: NDArray[np.int64]
    """Of examples with each given label."""


def estimate(evidence: Evidence) -> Estimate:
    """By counting where the prediction contradicts the label."""
    e, k = evidence, evidence.classes
    first = e.top[:, 0]
    joint = np.bincount(first.astype(np.int64) * k + e.y, minlength=k * k).reshape(k, k).astype(np.float64)
    true, given = joint.sum(1), joint.sum(0)
    matrix = joint / np.maximum(true, 1.0)[:, None]
    wrong = given - np.diag(joint)
    rate = float(wrong.sum() / joint.sum())
    low, high = wilson(np.array(rate), np.array(float(len(e))))
    spans = wilson(matrix, true[:, None])
    class_rate = wrong / np.maximum(given, 1.0)
    return Estimate(
        rate, float(low), float(high), matrix, *spans, class_rate, *wilson(class_rate, given), given.astype(np.int64)
    )


def wilson(share: Matrix, n: Matrix, z: float = 1.6449) -> tuple[Matrix, Matrix]:
    """The interval of a share that was seen among n."""
    n = np.maximum(n, 1.0)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
