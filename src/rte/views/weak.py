"""Weak views: a random crop, and a flip half of the time.

Images of one size are padded and cropped back to it; others give a random resized crop, drawn as is usual for ImageNet:
a share of the area and a width to height of 3/4 to 4/3, both again if the crop does not fit, and a place.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rte.views.config import ViewConfig
from rte.views.sampling import Floats, States, branch, uniform

ATTEMPTS = 10
RATIO = (3 / 4, 4 / 3)

Box = tuple[int, int, int, int]


def draw(state: States, views: int, cfg: ViewConfig) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """`place`, `box` and `flip` of `ViewParams` for states (B,)."""
    u = uniform(branch(state, views), 3 + 2 * ATTEMPTS)
    low, high = cfg.scale
    area = low + (high - low) * u[3 : 3 + ATTEMPTS]
    ratio = np.exp(math.log(RATIO[0]) + math.log(RATIO[1] / RATIO[0]) * u[3 + ATTEMPTS :])
    box = np.moveaxis(np.stack([area, ratio]), (0, 1), (3, 2))
    return np.moveaxis(u[:2], 0, -1), box, (u[2] < 0.5) & cfg.flip


def shifts(place: Floats, pad: int) -> NDArray[np.int64]:
    """The corner of the crop in the padded image, each coordinate from 0 to 2 pad."""
    return (place * (2 * pad + 1)).astype(np.int64)


def padded(n: int, pad: int, border: str) -> NDArray[np.int64]:
    """Which of n rows each row of the padded image shows, (n + 2 pad,); -1 is black."""
    row = np.arange(-pad, n + pad)
    if border == "zero":
        return np.where((row >= 0) & (row < n), row, -1)
    period = max(2 * (n - 1), 1)  # the edge itself is not repeated
    return np.asarray((n - 1) - np.abs((n - 1) - row % period), np.int64) if n > 1 else np.zeros_like(row)


def resized_crop(box: Floats, place: Floats, h: int, w: int) -> Box:
    """(top, left, height, width) of the first attempt that fits into h x w, or of as much of the middle as can be."""
    for area, ratio in box:
        width = round(math.sqrt(h * w * area * ratio))
        height = round(math.sqrt(h * w * area / ratio))
        if 0 < width <= w and 0 < height <= h:
            return int(place[0] * (h - height + 1)), int(place[1] * (w - width + 1)), height, width
    height = max(min(h, round(w / RATIO[0])), 1)
    width = max(min(w, round(h * RATIO[1])), 1)
    return (h - height) // 2, (w - width) // 2, height, width


def centre_crop(h: int, w: int, size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """For evaluation: the size to which an image is resized, 8/7 of what is needed, and where its middle begins."""
    factor = max(size[0] * 8 / 7 / h, size[1] * 8 / 7 / w)
    full = max(round(h * factor), size[0]), max(round(w * factor), size[1])
    return full, (round((full[0] - size[0]) / 2), round((full[1] - size[1]) / 2))
