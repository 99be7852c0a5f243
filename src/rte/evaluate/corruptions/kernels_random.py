"""Random numbers inside compiled loops: the n-th draw of an image is a function of the image's key and of n alone.

draw(key, n) = mix(key + n * GOLDEN), the generator SplitMix64 (Steele, Lea and Flood, 2014) read at any place.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner, kernel

Keys = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
UNIT = 2.0**-53


@inner
def mix(bits: np.uint64) -> np.uint64:
    """A bijection of 64 bits in which every bit of the input flips about half of the output."""
    bits = (bits ^ (bits >> S30)) * FIRST
    bits = (bits ^ (bits >> S27)) * SECOND
    return bits ^ (bits >> S31)


@kernel
def image_keys(key: np.uint64, index: NDArray[np.int64], keys: Keys) -> None:
    """keys[n] = the key of the image with dataset index index[n]."""
    for n in range(index.shape[0]):
        keys[n] = mix(key ^ mix(GOLDEN + np.uint64(index[n])))


@inner
def uniform(key: np.uint64, n: int) -> float:
    """The n-th draw from [0, 1)."""
    return np.float64(mix(key + np.uint64(n) * GOLDEN) >> S11) * UNIT


@inner
def normal(key: np.uint64, n: int) -> float:
    """The n-th draw from N(0, 1), made of the uniform draws 2n and 2n + 1 (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(key, 2 * n)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * n + 1))


@inner
def whole(key: np.uint64, n: int, below: int) -> int:
    """The n-th draw from 0..below-1."""
    return int(uniform(key, n) * below)
