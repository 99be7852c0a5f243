"""Drawing noisy labels from a noise model: which examples are corrupted, and what each is turned into.

Only uniform doubles are taken from the generator, so that labels rebuilt from a manifest do not depend on how a
version of NumPy shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rte.noise.checks import Matrix

Mask = NDArray[np.bool_]
Labels = NDArray[np.int64]

UNIT = 1 << 32


def whole(x: float) -> int:
    """x to the nearest integer, as if it carried no rounding error of its own."""
    return round(round(x, 6))


def chosen_exact(share: Matrix, rng: np.random.Generator) -> Mask:
    """Exactly round(sum share) of the examples, example i with probability share[i].

    Systematic sampling in a random order: the examples lie end to end on a line, i with length share[i], and those
    that hold a point of the grid u, u + 1, u + 2 ... are chosen. Equal shares make it a simple random sample. The line
    is measured in units of 2^-32, where sums are exact.
    """
    order = np.argsort(rng.random(len(share)), kind="stable")
    ends = np.cumsum(np.rint(share[order] * UNIT).astype(np.int64))
    full, rest = divmod(int(ends[-1]), UNIT)
    # The grid meets the line in full + 1 points if u falls in the last `rest` units before 1, else in full.
    low, high = (UNIT - rest, UNIT) if whole(float(share.sum())) > full else (0, UNIT - rest)
    ends += low + int(rng.random() * (high - low))
    mask = np.empty(len(share), dtype=bool)
    mask[order] = np.diff(ends // UNIT, prepend=0) > 0
    return mask


def chosen_bernoulli(share: Matrix, rng: np.random.Generator) -> Mask:
    """Example i with probability share[i], independently of all others."""
    return rng.random(len(share)) < share


def chosen_stratified(y: Labels, P: Matrix, rng: np.random.Generator) -> Mask:
    """Exactly round(P[k] * n_k) of the n_k examples of each class k."""
    mask = np.zeros(len(y), dtype=bool)
    for k, members in _by_class(y, np.argsort(rng.random(len(y)), kind="stable")):
        mask[members[: whole(P[k] * len(members))]] = True
    return mask


def corrupted(y: Labels, mask: Mask, C: Matrix, rng: np.random.Generator) -> Labels:
    """The labels with each chosen one redrawn from its row of C."""
    draws = rng.random(len(y))
    given = y.copy()
    for k, members in _by_class(y, np.flatnonzero(mask)):
        steps = np.cumsum(C[k])
        # Divided by its own end the last step is exactly 1, so a draw below 1 never lands on a class of probability 0.
        given[members] = np.searchsorted(steps / steps[-1], draws[members], side="right")
    return given


def _by_class(y: Labels, rows: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """The rows of each class that has any, in the order they came."""
    rows = rows[np.argsort(y[rows], kind="stable")]
    for members in np.split(rows, np.flatnonzero(np.diff(y[rows])) + 1):
        if len(members):
            yield int(y[members[0]]), members
