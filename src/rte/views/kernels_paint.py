"""Operations that look at several channels or neighbours at once, byte for byte as in Pillow. Images are (H, W, C)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner
from rte.views.kernels_lookup import blend

Bytes = NDArray[np.uint8]


@inner
def copy(src: Bytes, dst: Bytes) -> None:
    """dst = src."""
    for y in range(src.shape[0]):
        for x in range(src.shape[1]):
            for c in range(src.shape[2]):
                dst[y, x, c] = src[y, x, c]


@inner
def grey(src: Bytes, y: int, x: int) -> int:
    """The luma of one pixel: (19595 r + 38470 g + 7471 b) / 2^16, rounded; grey images keep their value."""
    if src.shape[2] == 1:
        return int(src[y, x, 0])
    return (19595 * int(src[y, x, 0]) + 38470 * int(src[y, x, 1]) + 7471 * int(src[y, x, 2]) + 0x8000) >> 16


@inner
def mean_grey(src: Bytes) -> int:
    """The mean luma, rounded: what contrast moves values away from."""
    total = 0
    for y in range(src.shape[0]):
        for x in range(src.shape[1]):
            total += grey(src, y, x)
    return int(total / (src.shape[0] * src.shape[1]) + 0.5)


@inner
def color(src: Bytes, factor: float, dst: Bytes) -> None:
    """Every pixel moved away from its own grey; `dst` may be `src`."""
    strength = np.float32(factor)
    for y in range(src.shape[0]):
        for x in range(src.shape[1]):
            base = grey(src, y, x)
            for c in range(src.shape[2]):
                dst[y, x, c] = blend(base, src[y, x, c], strength)


@inner
def sharpness(src: Bytes, factor: float, dst: Bytes) -> None:
    """Every inner pixel moved away from its smoothed value, (5 v + the eight around it) / 13; `dst` is not `src`."""
    h, w, channels = src.shape
    strength = np.float32(factor)
    copy(src, dst)
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            for c in range(channels):
                total = 4 * int(src[y, x, c])
                for i in range(y - 1, y + 2):
                    total += int(src[i, x - 1, c]) + int(src[i, x, c]) + int(src[i, x + 1, c])
                # 2 t + 13 is odd and 26 even: the quotient is never close to whole, so integers round as floats do.
                dst[y, x, c] = blend((2 * total + 13) // 26, src[y, x, c], strength)


@inner
def cutout(src: Bytes, side: int, centre_y: float, centre_x: float, fill: Bytes, dst: Bytes) -> None:
    """A square of one colour, cut off at the border; the centre is in shares of the height and width."""
    h, w, channels = src.shape
    top, left = int(centre_y * h) - side // 2, int(centre_x * w) - side // 2
    copy(src, dst)
    for y in range(max(top, 0), min(top + side, h)):
        for x in range(max(left, 0), min(left + side, w)):
            for c in range(channels):
                dst[y, x, c] = fill[c]
