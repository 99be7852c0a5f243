"""Counter-based randomness: every draw is a function of the seed and of what it is for, never of a shared stream.

A run that stops and resumes, or uses another number of threads, therefore draws the same numbers by construction.
"""

from __future__ import annotations

import hashlib

import numpy as np

MASK = (1 << 64) - 1


def fold(seed: int, *parts: int | str) -> int:
    """A 64-bit key for one purpose: `fold(seed, "order", epoch)`. Different parts give unrelated keys."""
    text = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in parts)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *parts: int | str) -> np.random.Generator:
    """A NumPy generator of its own for one purpose."""
    return np.random.Generator(np.random.Philox(key=fold(seed, *parts)))
