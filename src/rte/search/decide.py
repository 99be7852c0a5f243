"""The decisions of population based training, as in the paper's appendix. Everything is a function of its arguments.

exploit   a member in the worst quarter by score goes on from the checkpoint of one in the best quarter
explore   then each inherited value is drawn anew from its range or list with probability 1/4; else it is multiplied by
          w ~ U(0.8, 1.2) and kept within the range, or moves to the one before or after it in the list
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rte.rng import generator
from rte.search.space import Choice, Dimension, Number, Space, Values

QUANTILE = 0.25
RESAMPLE = 0.25
FACTOR = (0.8, 1.2)
DIVERGED = -math.inf
"""The score of a member whose loss is no longer finite."""


def sample(space: Space, *, seed: int, member: int) -> Values:
    """The values that a member begins with, each uniform over its range or list."""
    return {key: _draw(dimension, generator(seed, "sample", member, key)) for key, dimension in space.items()}


def quarters(scores: Mapping[int, float]) -> tuple[list[int], list[int]]:
    """The members of the worst and of the best quarter, a quarter being rounded up but never more than half.

    Of members with equal scores, the one with the lower number counts as the better one.
    """
    order = sorted(scores, key=lambda member: (scores[member], -member))
    size = min(math.ceil(len(order) * QUANTILE), len(order) // 2)
    return order[:size], order[len(order) - size :]


def exploit(scores: Mapping[int, float], member: int, *, seed: int, epoch: int) -> int:
    """Whose checkpoint a member goes on from: its own, or that of a better one from the best quarter.

    A diverged member inherits wherever it stands, if any member is better.
    """
    worst, best = quarters(scores)
    if member not in worst and scores[member] != DIVERGED:
        return member
    better = sorted(other for other in best if scores[other] > scores[member])
    if not better:
        return member
    return better[int(generator(seed, "exploit", member, epoch).integers(len(better)))]


def explore(space: Space, values: Values, *, seed: int, member: int, epoch: int) -> Values:
    """What becomes of the values that `member` inherits at `epoch`."""
    return {
        key: _perturb(dimension, values[key], generator(seed, "explore", member, epoch, key))
        for key, dimension in space.items()
    }


def _draw(dimension: Dimension, rng: np.random.Generator) -> Number:
    if isinstance(dimension, Choice):
        return dimension.values[int(rng.integers(len(dimension.values)))]
    return float(rng.uniform(dimension.low, dimension.high))


def _perturb(dimension: Dimension, value: Number, rng: np.random.Generator) -> Number:
    if rng.random() < RESAMPLE:
        return _draw(dimension, rng)
    if isinstance(dimension, Choice):
        place = dimension.values.index(value)
        near = [i for i in (place - 1, place + 1) if 0 <= i < len(dimension.values)] or [place]
        return dimension.values[near[int(rng.integers(len(near)))]]
    return min(max(value * float(rng.uniform(*FACTOR)), dimension.low), dimension.high)
