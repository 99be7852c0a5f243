"""Noise, pixel by pixel and channel by channel. Images and results are (N, H, W, C) uint8, `keys` (N,).

Values count as v/255 and results are cut off, not rounded, as in the published sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rte.evaluate.corruptions.kernels_random import Keys, normal, uniform
from rte.jit import inner, kernel

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

# Far above the rounding error of a weighted mean, far below a visible step: a plain area keeps its value when cut off.
SLACK = 1e-6


@inner
def byte(value: float) -> np.uint8:
    """A value of 0..255 cut off to a byte, what is outside clipped."""
    return np.uint8(min(max(value, 0.0), 255.0) + SLACK)


@kernel
def gaussian_noise(images: Bytes, keys: Keys, sigma: float, out: Bytes) -> None:
    """x + N(0, sigma^2)."""
    for n in range(images.shape[0]):
        src, dst = images[n].reshape(-1), out[n].reshape(-1)
        for j in range(src.shape[0]):
            dst[j] = byte(src[j] + 255.0 * sigma * normal(keys[n], j))


@kernel
def speckle_noise(images: Bytes, keys: Keys, sigma: float, out: Bytes) -> None:
    """x + x N(0, sigma^2)."""
    for n in range(images.shape[0]):
        src, dst = images[n].reshape(-1), out[n].reshape(-1)
        for j in range(src.shape[0]):
            dst[j] = byte(src[j] * (1.0 + sigma * normal(keys[n], j)))


@kernel
def impulse_noise(images: Bytes, keys: Keys, share: float, out: Bytes) -> None:
    """Each value becomes 255 with probability share/2 and 0 with probability share/2."""
    for n in range(images.shape[0]):
        src, dst = images[n].reshape(-1), out[n].reshape(-1)
        for j in range(src.shape[0]):
            draw = uniform(keys[n], j)
            dst[j] = src[j] if draw >= share else 255 if draw < 0.5 * share else 0


@kernel
def shot_noise(images: Bytes, keys: Keys, below: Floats, guide: NDArray[np.int64], out: Bytes) -> None:
    """Poisson(x c) / c by inversion: below[v, k] = P(at most k photons | value v), k = 0..c.

    guide[v, b] is where the search starts for a draw in the b-th of equal parts of [0, 1).
    """
    photons, parts = below.shape[1] - 1, guide.shape[1]
    for n in range(images.shape[0]):
        src, dst = images[n].reshape(-1), out[n].reshape(-1)
        for j in range(src.shape[0]):
            draw = uniform(keys[n], j)
            k = guide[src[j], int(draw * parts)]
            while k < photons and below[src[j], k] <= draw:  # more than c photons are clipped to c
                k += 1
            dst[j] = byte(255.0 * k / photons)
