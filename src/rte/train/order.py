"""Which examples each step of an epoch sees: a function of (seed, epoch, pass), so that any step can be found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.methods.base import Pass
from rte.rng import generator

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Slot:
    """One step: its pass, its examples, how often each has come before in this pass, and the second stream's."""

    pass_number: int
    index: Index
    again: Index
    second: Index | None = None
    second_again: Index | None = None

    def cut(self, rank: int, ranks: int, pieces: int) -> list[Slot]:
        """The share of one of so many processes, in so many pieces."""

        def each(values: Index | None) -> Sequence[Index | None]:
            if values is None:
                return [None] * pieces
            return np.array_split(np.array_split(values, ranks)[rank], pieces)

        columns = (each(v) for v in (self.index, self.again, self.second, self.second_again))
        return [Slot(self.pass_number, a, b, c, d) for a, b, c, d in zip(*columns, strict=True)]


def epoch_slots(passes: Sequence[Pass], *, n: int, batch: int, seed: int, epoch: int) -> list[Slot]:
    """The steps of an epoch, pass after pass; a last batch that would be smaller than the others is left out."""
    slots = []
    for number, one in enumerate(passes):
        index = np.arange(n, dtype=np.int64) if one.index is None else one.index.cpu().numpy().astype(np.int64)
        if len(index) == 0:
            continue
        size = min(one.batch or batch, len(index))
        order = generator(seed, "order", epoch, number).permutation(index)
        steps = len(order) // size
        again = occurrences(order) if one.index is not None else np.zeros(len(order), np.int64)
        first, before = (values[: steps * size].reshape(steps, size) for values in (order, again))
        if one.second is None or not len(one.second):
            slots += [Slot(number, a, b) for a, b in zip(first, before, strict=True)]
            continue
        pool = one.second.cpu().numpy().astype(np.int64)
        second = _cycle(pool, steps, min(one.second_batch or size, len(pool)), seed, epoch, number)
        rows = zip(first, before, second, strict=True)
        slots += [Slot(number, a, b, c, occurrences(c)) for a, b, c in rows]
    return slots


def occurrences(index: Index) -> Index:
    """How often each entry has stood in `index` before: [3, 5, 3, 3] -> [0, 0, 1, 2]."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)) if len(index) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(starts, len(index)))
    out = np.empty(len(index), np.int64)
    out[order] = np.arange(len(index)) - np.repeat(starts, lengths)
    return out


def _cycle(pool: Index, steps: int, size: int, seed: int, epoch: int, number: int) -> list[Index]:
    rounds = -(-steps * size // len(pool))
    orders = [generator(seed, "second", epoch, number, k).permutation(pool) for k in range(rounds)]
    return list(np.concatenate(orders)[: steps * size].reshape(steps, size))
