"""What the kernels of blurs are told: weights of neighbours, and which pixel stands for one outside the image."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Border = Literal["edge", "symmetric", "reflect"]
"""Beyond the last pixel d of a b c d: "edge" d d d, "symmetric" d c b, "reflect" c b a."""


def outside(size: tuple[int, int], margin: int, border: Border) -> tuple[Indices, Indices]:
    """For rows and for columns: index[margin + j] is the pixel that stands for j, -margin <= j < side + margin."""
    height, width = (np.pad(np.arange(side, dtype=np.int64), margin, mode=border) for side in size)
    return height, width


def gaussian_taps(sigma: float, truncate: float = 4.0) -> Floats:
    """exp(-j^2 / (2 sigma^2)) for |j| <= round(truncate * sigma), summing to 1."""
    return bell(sigma, int(truncate * sigma + 0.5))


def bell(sigma: float, radius: int) -> Floats:
    """exp(-j^2 / (2 sigma^2)) for |j| <= radius, summing to 1."""
    j = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (j / sigma) ** 2) if radius else np.ones(1)
    normalised: Floats = weights / weights.sum()
    return normalised


def trail(radius: int, sigma: float) -> Floats:
    """The one-sided weights of ImageMagick's motion blur: exp(-i^2 / (2 sigma^2)), i = 0..2 radius, summing to 1."""
    i = np.arange(2 * radius + 1)
    weights = np.exp(-0.5 * (i / sigma) ** 2)
    normalised: Floats = weights / weights.sum()
    return normalised


def disk(radius: float, smoothing: float) -> tuple[Floats, Indices, Indices, int]:
    """A disk smoothed by a small Gaussian: weights, rows and columns of its pixels from its corner, and its margin."""
    reach, blur = (8, 1) if radius <= 8 else (int(radius), 2)
    at = np.arange(-reach, reach + 1)
    inside = (at[:, None] ** 2 + at[None, :] ** 2 <= radius**2).astype(np.float64)
    taps = bell(smoothing, blur)
    rows, cols = outside(inside.shape, blur, "reflect")  # the largest disk touches its frame
    half = sum(weight * inside[rows[k : k + len(at)]] for k, weight in enumerate(taps))
    weights = sum(weight * half[:, cols[k : k + len(at)]] for k, weight in enumerate(taps))
    down, right = np.nonzero(weights > 1e-12 * weights.max())
    corner = min(down.min(), right.min())
    values: Floats = weights[down, right] / inside.sum()
    return values, down - corner, right - corner, int(reach - corner)


def zoom(side: int, factors: Floats) -> tuple[Indices, Floats]:
    """For each factor, where in the image the pixels of its zoomed middle lie: whole part and fraction, (Z, side) each.

    The middle m = ceil(side / factor) pixels are stretched so that their ends meet those of round(m * factor) pixels;
    of these the middle `side` are kept.
    """
    crop = np.ceil(side / factors)[:, None]
    stretched = np.round(crop * factors[:, None])
    step = (crop - 1) / np.maximum(stretched - 1, 1)
    place = np.minimum((np.arange(side) + (stretched - side) // 2) * step, crop - 1)
    whole = np.floor(place)
    return (whole + (side - crop) // 2).astype(np.int64), place - whole


def photon_table(photons: int) -> Floats:
    """P(at most k | mean photons * v/255) for bytes v and k = 0..photons, (256, photons + 1)."""
    mean = photons * np.arange(256) / 255.0
    k = np.arange(1, photons + 1)
    with np.errstate(divide="ignore"):
        # log p(k) = log p(k - 1) + log(mean / k), from p(0) = exp(-mean)
        log_p = (
            np.concatenate([np.zeros((256, 1)), np.cumsum(np.log(mean[:, None] / k), axis=1)], axis=1) - mean[:, None]
        )
    table: Floats = np.exp(log_p).cumsum(axis=1)
    return table


def search_guide(table: Floats, parts: int = 256) -> Indices:
    """guide[v, b] = the least k with table[v, k] > b / parts, at most the last k; (256, parts)."""
    starts = np.arange(parts) / parts
    guide: Indices = np.stack([np.searchsorted(row, starts, side="right") for row in table])
    return guide.clip(max=table.shape[1] - 1)
