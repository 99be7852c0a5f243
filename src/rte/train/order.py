"""Which examples each step of an epoch sees: a function of (seed, epoch, pass), so that any step can be found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.methods.base import Pass
from rte.rng import generator


@dataclass(frozen=True)
class Slot:
    """One step: its pass, its examples, and those of the second stream."""

    part: int
    index: NDArray[np.int64]
    second: NDArray[np.int64] | None


def epoch_slots(passes: Sequence[Pass], *, n: int, batch: int, seed: int, epoch: int) -> list[Slot]:
    """The steps of an epoch, pass after pass; a last batch that would be smaller than the others is left out."""
    slots = []
    for part, one in enumerate(passes):
        index = np.arange(n, dtype=np.int64) if one.index is None else one.index.cpu().numpy().astype(np.int64)
        if len(index) == 0:
            continue
        size = min(one.batch or batch, len(index))
        order = generator(seed, "order", epoch, part).permutation(index)
        first = order[: len(order) // size * size].reshape(-1, size)
        second: Sequence[NDArray[np.int64] | None] = [None] * len(first)
        if one.second is not None and len(one.second):
            pool = one.second.cpu().numpy().astype(np.int64)
            second = _cycle(pool, len(first), min(one.second_batch or size, len(pool)), seed, epoch, part)
        slots += [Slot(part, a, b) for a, b in zip(first, second, strict=True)]
    return slots


def _cycle(pool: NDArray[np.int64], steps: int, size: int, seed: int, epoch: int, part: int) -> list[NDArray[np.int64]]:
    rounds = -(-steps * size // len(pool))
    orders = [generator(seed, "second", epoch, part, k).permutation(pool) for k in range(rounds)]
    return list(np.concatenate(orders)[: steps * size].reshape(steps, size))
