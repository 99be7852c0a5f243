"""Pairs of 64-bit hashes that differ in few bits, without comparing all with all.

Multi-index hashing: the hash is cut into four bands of 16 bits. Of two hashes that differ in at most 7 bits, one band
differs in at most one; so hashes are looked up by each band as it is, and with each of its bits turned. Exact: no pair
is missed, but for those of hashes that thousands share in a band.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BANDS, WIDTH = 4, 16
MOST = 2 * BANDS - 1
"""Bits that may differ."""
CROWD = 5000
"""Hashes with the same band, of which more are not compared: hardly anything can be seen on such images."""


def pairs_within(hashes: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
    """The pairs (M, 2), first < second, sorted, of hashes (N,) that differ in at most `most` bits."""
    if not 0 <= most <= MOST:
        raise ValueError(f"{most} bits cannot be looked for; give 0 to {MOST}")
    from rte.data.check.kernels_near import close_pairs

    found = [np.zeros((0, 2), np.int64)]
    for band in range(BANDS):
        key = ((hashes >> np.uint64(WIDTH * band)) & np.uint64(2**WIDTH - 1)).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=2**WIDTH))]).astype(np.int64)
        found.append(close_pairs(hashes, key, np.argsort(key, kind="stable"), first, CROWD, most))
    pairs: NDArray[np.int64] = np.unique(np.concatenate(found), axis=0)
    return pairs
