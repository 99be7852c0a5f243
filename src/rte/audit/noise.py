"""How many labels are wrong, and which classes are taken for which: a rate and a matrix, each with an interval.

Nobody can tell from the labels and the predictions alone whether two classes are taken for each other by the people
who labelled or by the network that learnt from them. Two answers bound the truth: that wrong labels do not depend on
the image (`likelihood`: all that the network finds hard is its own fault), and that the network is always right (every
contradiction is a wrong label). Where sure predictions are contradicted by the class that comes next to them, labels go
wrong where images are hard, as people's do, and the estimate lies nearer to the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.audit.evidence import Evidence
from rte.audit.likelihood import candidates, fit

MOST = 200
"""Of more classes, the matrix is not written out, only its strongest entries."""
STRONGEST = 500
SURE = 0.5
"""The share of predictions, the most confident ones, that are called sure."""
LEAN = 12.0
"""How fast the estimate leans to the contradictions, with the share of people's mistakes among them; by measurement."""
SLACK = 0.01
"""By how much the two answers were off at most, where the truth lay outside them."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """rate, low, high; F[a, b] = P(given b | true a) with low and high; per given class the share that is wrong.

    `fewest` and `most` are the two answers between which the rate lies.
    """

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
    fewest: float
    most: float


def estimate(evidence: Evidence) -> Estimate:
    """The noise in the labels of some examples."""
    e, k, n = evidence, evidence.classes, len(evidence)
    found = fit(e)
    wrong = 1.0 - found.right
    contradicted = (e.top[:, 0] != e.y).astype(np.float64)
    lean = human(e)
    share = wrong + lean * np.maximum(contradicted - wrong, 0.0)
    fewest, most = float(wrong.mean()), max(float(contradicted.mean()), float(wrong.mean()))
    counts = np.bincount(e.y, minlength=k)
    class_wrong = np.bincount(e.y, share, minlength=k)
    joint = spread(e, share)
    true = joint.sum(1)
    matrix = joint / np.maximum(true, 1e-9)[:, None]
    rate = float(share.mean())
    most = max(most, rate)
    less, more = rate - fewest + SLACK, most - rate + SLACK
    low, high = _around(np.array(rate), np.array(float(n)), less, more)
    spans = _around(matrix, true[:, None], _part(matrix, less, rate), _part(matrix, more, rate))
    class_rate = class_wrong / np.maximum(counts, 1)
    own = _part(class_rate, less, rate), _part(class_rate, more, rate)
    class_span = _around(class_rate, counts.astype(np.float64), *own)
    return Estimate(
        rate, float(low), float(high), matrix, *spans, class_rate, *class_span, counts.astype(np.int64), fewest, most
    )


def human(e: Evidence) -> float:
    """How much the wrong labels look like people's mistakes, 0..1.

    Among sure predictions that the label contradicts: how often it names the second class, beyond chance; times how
    often sure predictions are contradicted, beyond what they grant themselves, against all.
    """
    p = e.top_p[:, 0]
    sure = p >= np.quantile(p, 1 - SURE)
    against = e.top[:, 0] != e.y
    seen = sure & against
    if e.classes < 3 or not seen.any():
        return 0.0
    second, _ = e.best_but(e.top[:, 0])
    chance = 1 / (e.classes - 1)
    next_to = max(0.0, (float((second == e.y)[seen].mean()) - chance) / (1 - chance))
    often = max(0.0, float((against - (1.0 - p))[sure].mean())) / max(float(against.mean()), 1e-9)
    return min(1.0, LEAN * next_to * often)


def spread(e: Evidence, wrong: Matrix) -> Matrix:
    """Joint counts of true and given classes (K, K), when label i is wrong with probability wrong[i]."""
    k = e.classes
    classes, p = candidates(e)
    others = np.where(classes == e.y[:, None], 0.0, p.astype(np.float64))
    total = others.sum(1, keepdims=True)
    others *= np.divide(wrong[:, None], total, out=np.zeros_like(total), where=total > 0)
    place = classes.astype(np.int64) * k + e.y[:, None]
    joint = np.bincount(place.ravel(), others.ravel(), k * k).reshape(k, k)
    return np.asarray(joint + np.diag(np.bincount(e.y, 1.0 - wrong, minlength=k)))


def _part(values: Matrix, gap: float, rate: float) -> Matrix:
    """What a gap of the overall rate means for a part of it: in proportion."""
    return np.asarray(np.minimum(gap * np.minimum(values, 1.0 - values) / max(rate, 0.02), 0.5))


def _around(share: Matrix, n: Matrix, less: float | Matrix, more: float | Matrix) -> tuple[Matrix, Matrix]:
    """Chance, and the distance to both answers, together."""
    low, high = wilson(share, n)
    return (
        np.clip(share - np.hypot(share - low, less), 0.0, 1.0),
        np.clip(share + np.hypot(high - share, more), 0.0, 1.0),
    )


def wilson(share: Matrix, n: Matrix, z: float = 1.6449) -> tuple[Matrix, Matrix]:
    """The interval of a share that was seen among n."""
    n = np.maximum(n, 1.0)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
