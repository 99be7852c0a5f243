"""Operations that are a table of 256 entries per channel, byte for byte as in Pillow.

An image is (H, W, C) uint8; a table or a histogram is (C, 256).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int32]


@inner
def count(src: Bytes, hist: Counts) -> None:
    """hist[c, v] = how often channel c has the value v."""
    one = np.int32(1)
    for c in range(hist.shape[0]):
        for v in range(256):
            hist[c, v] = 0
    if src.shape[2] == 3:
        for y in range(src.shape[0]):
            for x in range(src.shape[1]):
                hist[0, src[y, x, 0]] += one
                hist[1, src[y, x, 1]] += one
                hist[2, src[y, x, 2]] += one
    else:
        for y in range(src.shape[0]):
            for x in range(src.shape[1]):
                hist[0, src[y, x, 0]] += one


@inner
def look_up(src: Bytes, table: Bytes, dst: Bytes) -> None:
    """dst = table[c, src]; `dst` may be `src`."""
    if src.shape[2] == 3:
        for y in range(src.shape[0]):
            for x in range(src.shape[1]):
                dst[y, x, 0] = table[0, src[y, x, 0]]
                dst[y, x, 1] = table[1, src[y, x, 1]]
                dst[y, x, 2] = table[2, src[y, x, 2]]
    else:
        for y in range(src.shape[0]):
            for x in range(src.shape[1]):
                dst[y, x, 0] = table[0, src[y, x, 0]]


@inner
def count_looked_up(hist: Counts, table: Bytes, result: Counts) -> None:
    """The histogram of an image after `look_up`, from the one before it, without touching the pixels."""
    for c in range(hist.shape[0]):
        for v in range(256):
            result[c, v] = 0
        for v in range(256):
            result[c, table[c, v]] += hist[c, v]


@inner
def compose(table: Bytes, then: Bytes) -> None:
    """table = then[table]: two look-ups become one."""
    for c in range(table.shape[0]):
        for v in range(256):
            table[c, v] = then[c, table[c, v]]


@inner
def autocontrast(hist: Counts, table: Bytes) -> None:
    """Stretches each channel's range to 0..255: int(v * s - low * s) with s = 255 / (high - low)."""
    for c in range(hist.shape[0]):
        low, high = 0, 255
        while low < 255 and hist[c, low] == 0:
            low += 1
        while high > 0 and hist[c, high] == 0:
            high -= 1
        # Same operations in the same order as Pillow, because a value may land on either side of a whole number.
        scale, offset = 1.0, 0.0
        if high > low:
            scale = 255.0 / (high - low)
            offset = -low * scale
        for v in range(256):
            table[c, v] = np.uint8(min(max(v * scale + offset, 0.0), 255.0))


@inner
def equalize(hist: Counts, table: Bytes) -> None:
    """Flattens each channel's histogram: v -> (step // 2 + pixels below v) // step, step = (pixels - last bin) // 255.

    The last bin is that of the highest value there is.
    """
    for c in range(hist.shape[0]):
        total, last = 0, 0
        for v in range(256):
            total += hist[c, v]
            last = hist[c, v] if hist[c, v] > 0 else last
        step = (total - last) // 255
        # Half a pixel more keeps the quotient clear of whole numbers, so a multiplication can replace the division.
        inverse, below = 1.0 / max(step, 1), step // 2 + 0.5
        for v in range(256):
            table[c, v] = np.uint8(min(below * inverse, 255.0)) if step > 0 else np.uint8(v)
            below += hist[c, v]


@inner
def ramp(table: Bytes) -> None:
    """The look-up that changes nothing."""
    for c in range(table.shape[0]):
        for v in range(256):
            table[c, v] = np.uint8(v)


@inner
def posterize(src: Bytes, bits: int, dst: Bytes) -> None:
    """Keeps the upper `bits` bits of flat bytes. Unlike a table this is vectorised, as are the next two."""
    mask = np.uint8(0xFF00 >> bits & 0xFF)
    for j in range(src.shape[0]):
        dst[j] = src[j] & mask


@inner
def solarize(src: Bytes, threshold: float, dst: Bytes) -> None:
    """Inverts values at or above the threshold."""
    bound = np.uint8(min(max(np.ceil(threshold), 0.0), 255.0))
    turn = np.uint8(255 if threshold <= 255.0 else 0)  # a bound of 256 does not fit a byte, so nothing is turned then
    for j in range(src.shape[0]):
        value = src[j]
        dst[j] = value ^ turn if value >= bound else value


@inner
def invert(src: Bytes, dst: Bytes) -> None:
    """255 - v."""
    for j in range(src.shape[0]):
        dst[j] = src[j] ^ np.uint8(255)


@inner
def solarize_add(amount: float, everywhere: bool, table: Bytes) -> None:
    """Adds to values below 128; or, `everywhere`, to all values, and then inverts those at or above 128."""
    extra = int(amount)
    for c in range(table.shape[0]):
        for v in range(256):
            value = min(v + extra, 255) if everywhere or v < 128 else v
            table[c, v] = np.uint8(255 - value if everywhere and value >= 128 else value)


@inner
def blend(low: float, high: float, factor: np.float32) -> np.uint8:
    """Pillow's blend of two bytes: low + factor (high - low) in single precision, clipped and cut off."""
    value = np.float32(low) + factor * (np.float32(high) - np.float32(low))
    return np.uint8(min(max(value, np.float32(0.0)), np.float32(255.0)))


@inner
def fade(grey: int, factor: float, table: Bytes) -> None:
    """Values moved away from one grey: brightness for black, contrast for the image's mean."""
    for c in range(table.shape[0]):
        for v in range(256):
            table[c, v] = blend(grey, v, np.float32(factor))
