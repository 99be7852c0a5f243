"""The inner loop of the search for hashes that differ in few bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner, kernel

Rows = NDArray[np.int64]


@inner
def ones(x: np.uint64) -> int:
    """How many bits of a number are set."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def close_pairs(hashes: NDArray[np.uint64], key: Rows, order: Rows, first: Rows, crowd: int, most: int) -> Rows:
    """Pairs (M, 2) that differ in at most `most` bits, and in at most one bit of the band whose keys are `key` (N,).

    order (N,): rows sorted by key; first (2^16 + 1,): where each key begins in it. Keys that more than `crowd` rows
    share are passed over. A row is only compared with later ones of its key, and of keys with one more bit set.
    """
    found = np.empty((1024, 2), np.int64)
    n = 0
    bits = 16 if most > 3 else 0
    for place in range(len(order)):
        i = order[place]
        own = key[i]
        if first[own + 1] - first[own] > crowd:
            continue
        for bit in range(-1, bits):
            other = own if bit < 0 else own | (1 << bit)
            if bit >= 0 and other == own:
                continue
            start, end = (place + 1 if bit < 0 else first[other]), first[other + 1]
            if end - first[other] > crowd:
                continue
            for k in range(start, end):
                j = order[k]
                if ones(hashes[i] ^ hashes[j]) <= most:
                    if n == len(found):
                        larger = np.empty((2 * n, 2), np.int64)
                        larger[:n] = found
                        found = larger
                    found[n, 0] = min(i, j)
                    found[n, 1] = max(i, j)
                    n += 1
    return found[:n]
