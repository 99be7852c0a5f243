"""Shrinking and enlarging as Pillow's bilinear `resize` does it. Images are (H, W, C) uint8.

Each output row is mixed from whole input rows, then shortened or stretched; both steps are byte for byte Pillow's.
Pillow takes them in either order, depending on its version and the sizes, which may change a value by one level.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner, kernel

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int32]

BITS = 22  # weights are counted in 1 / 2^22: what is left of 32 bits beside a byte and Pillow's two spare ones


@inner
def taps(length: int, full: int, offset: int, n: int, back: bool) -> tuple[Integers, Integers, Integers]:
    """Which input pixels make up each of n output pixels, and with what weight.

    The input has `length` pixels and becomes `full`; the n wanted ones begin at `offset`, or run `back` to it. Returns
    the first input pixel (n,), how many there are (n,) and their weights (n, most): a triangle that reaches
    `length / full` pixels to each side, at least one.
    """
    scale = length / full
    reach = max(scale, 1.0)
    first, count = np.empty(n, np.int32), np.empty(n, np.int32)
    weights = np.zeros((n, math.ceil(reach) * 2 + 1), np.int32)
    share = np.empty(weights.shape[1], np.float64)
    for k in range(n):
        centre = (offset + (n - 1 - k if back else k) + 0.5) * scale
        low = max(int(centre - reach + 0.5), 0)
        high = min(int(centre + reach + 0.5), length)
        total = 0.0
        for i in range(high - low):
            share[i] = max(1.0 - abs((i + low - centre + 0.5) * (1.0 / reach)), 0.0)
            total += share[i]
        for i in range(high - low):
            weights[k, i] = int(0.5 + share[i] / total * (1 << BITS))
        first[k], count[k] = low, high - low
    return first, count, weights


@inner
def byte(total: np.int32) -> np.uint8:
    """A weighted sum of bytes as a byte; weights may add up to a trifle more than 1."""
    return np.uint8(min(int(total) >> BITS, 255))


@kernel
def resize(
    src: Bytes, box: NDArray[np.int64], full: NDArray[np.int64], offset: NDArray[np.int64], flip: bool, dst: Bytes
) -> None:
    """dst (H, W, C) = the part from `offset` on of a box of src, resized to `full` (height, width).

    The box is (top, left, height, width). Flipped left to right if asked.
    """
    h, w, channels = dst.shape
    half = np.int32(1 << (BITS - 1))
    top, tall, heights = taps(box[2], full[0], offset[0], h, False)
    left, wide, widths = taps(box[3], full[1], offset[1], w, flip)
    flat = src.reshape(src.shape[0], src.shape[1] * channels)
    start, values = np.uint64(box[1] * channels), box[3] * channels
    sums, line = np.empty(values, np.int32), np.empty((box[3], channels), np.uint8)
    line_values = line.reshape(-1)
    for y in range(h):
        for j in range(values):
            sums[j] = half
        for i in range(tall[y]):
            row, weight = box[0] + top[y] + i, heights[y, i]
            for j in range(values):
                sums[j] += np.int32(flat[row, start + np.uint64(j)]) * weight
        for j in range(values):
            line_values[j] = byte(sums[j])
        for x in range(w):
            one = two = three = half
            for i in range(wide[x]):
                at, weight = np.uint64(left[x] + i), widths[x, i]
                one += np.int32(line[at, 0]) * weight
                if channels == 3:
                    two += np.int32(line[at, 1]) * weight
                    three += np.int32(line[at, 2]) * weight
            dst[y, x, 0] = byte(one)
            if channels == 3:
                dst[y, x, 1] = byte(two)
                dst[y, x, 2] = byte(three)
