"""Geometry as Pillow's AFFINE transform does it: pixel centres at +0.5, and a colour for what comes from outside.

An image is (H, W, C) uint8. Output pixel (x, y) samples the input at

    u = a (x + 1/2) + b (y + 1/2) + c,   v = d (x + 1/2) + e (y + 1/2) + f,

and is `fill` unless 0 <= u < W and 0 <= v < H. Whether a pixel lies inside is decided in double precision by the very
expression Pillow uses; bilinear values are then computed in fixed point and differ from Pillow's by at most one level.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner

Bytes = NDArray[np.uint8]
Weights = NDArray[np.uint16]
Pixels = NDArray[np.uint64]

ONE = np.uint64(1)
EIGHT = np.uint32(8)
LANE = np.uint64(21)  # three channels of 8 + 13 bits side by side in one 64-bit word
TWO_LANES = np.uint64(42)
PART_BITS = np.uint64(13)  # weights are counted in 1 / 2^13
GREEN = np.uint64(34)  # where the whole part of the second lane starts: 21 + 13
BLUE = np.uint64(55)


@inner
def passing(a: float, p: float, c: float, limit: float, n: int) -> int:
    """The first x in 0..n at which a (x + 1/2) + p + c has passed the limit: is >= it if a > 0, < it if a < 0."""
    guess = np.ceil((limit - p - c) / a - 0.5)
    x = int(min(max(guess, 0.0), float(n)))
    while x > 0 and ((a * (x - 0.5) + p) + c >= limit) == (a > 0.0):
        x -= 1
    while x < n and ((a * (x + 0.5) + p) + c >= limit) != (a > 0.0):
        x += 1
    return x


@inner
def inside(a: float, p: float, c: float, limit: float, n: int) -> tuple[int, int]:
    """The x in 0..n-1, from first to before last, for which 0 <= a (x + 1/2) + p + c < limit."""
    if a > 0.0:
        return passing(a, p, c, 0.0, n), passing(a, p, c, limit, n)
    if a < 0.0:
        return passing(a, p, c, limit, n), passing(a, p, c, 0.0, n)
    return (0, n) if 0.0 <= (p + c) < limit else (0, 0)


@inner
def paint(dst: Bytes, y: int, start: int, stop: int, fill: Bytes) -> None:
    """Colours the pixels start..stop-1 of row y."""
    for x in range(start, stop):
        for c in range(dst.shape[2]):
            dst[y, x, c] = fill[c]


@inner
def weights_of(shift: float) -> tuple[np.uint16, np.uint16]:
    """The weights, in 1 / 2^16, of the two pixels between which a shifted one lies."""
    far = int((shift - math.floor(shift)) * 65536.0)
    return np.uint16(min(65536 - far, 65535)), np.uint16(min(far, 65535))


@inner
def between(near: np.uint8, u: np.uint16, far: np.uint8, v: np.uint16) -> np.uint8:
    """near * u + far * v for weights in 1 / 2^16, cut off.

    Both products are kept to 1 / 2^8 and the last 1 makes up for what they lose, so equal neighbours keep their value.
    """
    total = (np.uint32(near) * np.uint32(u) >> EIGHT) + (np.uint32(far) * np.uint32(v) >> EIGHT) + np.uint32(1)
    return np.uint8(np.uint32(total) >> EIGHT)


@inner
def shear_x(src: Bytes, slope: float, fill: Bytes, dst: Bytes) -> None:
    """u = x + slope * y: every row moves by its own fraction of a pixel, with the same two weights throughout."""
    h, w, c = src.shape
    flat, to = src.reshape(h, w * c), dst.reshape(h, w * c)
    for y in range(h):
        move = slope * (y + 0.5)
        start, stop = inside(1.0, move, 0.0, float(w), w)
        whole, (u, v) = math.floor(move), weights_of(move)
        paint(dst, y, 0, start, fill)
        paint(dst, y, stop, w, fill)
        first, last = max(start, -whole), min(stop, w - 1 - whole)  # here both neighbours exist
        for x in range(start, min(first, stop)):
            paint(dst, y, x, x + 1, src[y, 0])
        for x in range(max(last, start), stop):
            paint(dst, y, x, x + 1, src[y, w - 1])
        ahead = whole * c
        for j in range(first * c, last * c):
            dst_j, near = np.uint64(j), np.uint64(j + ahead)
            to[y, dst_j] = between(flat[y, near], u, flat[y, near + np.uint64(c)], v)


@inner
def shear_y(src: Bytes, slope: float, fill: Bytes, weights: Weights, stairs: Bytes, dst: Bytes) -> None:
    """v = y + slope * x: first every column moves by whole pixels, then each row is mixed with the one below it.

    `weights` (2, W * C) and `stairs` (H + 1, W * C) are scratch space.
    """
    h, w, c = src.shape
    flat, to = src.reshape(h, w * c), dst.reshape(h, w * c)
    start = 0
    while start < w:
        whole = math.floor(slope * (start + 0.5))
        stop = level_until(slope, start, whole, w)
        for y in range(h + 1):
            row = min(max(y + whole, 0), h - 1)
            for j in range(start * c, stop * c):
                stairs[y, np.uint64(j)] = flat[row, np.uint64(j)]
        for x in range(start, stop):
            u, v = weights_of(slope * (x + 0.5))
            for j in range(x * c, x * c + c):
                weights[0, j] = u
                weights[1, j] = v
        start = stop
    for y in range(h):
        for j in range(w * c):
            to[y, j] = between(stairs[y, j], weights[0, j], stairs[y + 1, j], weights[1, j])
        start, stop = inside(slope, y + 0.5, 0.0, float(h), w)
        paint(dst, y, 0, start, fill)
        paint(dst, y, stop, w, fill)


@inner
def level_until(slope: float, x: int, whole: int, w: int) -> int:
    """The first column after x whose shift, rounded down, is no longer `whole`."""
    bound = whole + 1 if slope > 0.0 else whole
    end = int(min(max(bound / slope - 0.5, x + 1.0), float(w)))
    while end > x + 1 and math.floor(slope * (end - 0.5)) != whole:
        end -= 1
    while end < w and math.floor(slope * (end + 0.5)) == whole:
        end += 1
    return end


@inner
def translate(src: Bytes, right: int, down: int, fill: Bytes, dst: Bytes) -> None:
    """u = x + right, v = y + down, for whole pixels: rows are copied."""
    h, w, c = src.shape
    flat, to = src.reshape(h, w * c), dst.reshape(h, w * c)
    start, stop = min(max(-right, 0), w), max(min(w - right, w), 0)
    for y in range(h):
        if not 0 <= y + down < h or start >= stop:
            paint(dst, y, 0, w, fill)
            continue
        paint(dst, y, 0, start, fill)
        paint(dst, y, stop, w, fill)
        for j in range(start * c, stop * c):
            to[y, np.uint64(j)] = flat[y + down, np.uint64(j + right * c)]


@inner
def widen(src: Bytes, wide: Pixels) -> None:
    """Every pixel as one word of three lanes, with the edge repeated once around: wide is (H + 2, W + 2)."""
    h, w, c = src.shape
    for y in range(h):
        for x in range(w):
            pixel = np.uint64(src[y, x, 0])
            if c == 3:
                pixel |= np.uint64(src[y, x, 1]) << LANE | np.uint64(src[y, x, 2]) << TWO_LANES
            wide[y + 1, x + 1] = pixel
        wide[y + 1, 0] = wide[y + 1, 1]
        wide[y + 1, w + 1] = wide[y + 1, w]
    for x in range(w + 2):
        wide[0, x] = wide[1, x]
        wide[h + 1, x] = wide[h, x]


@inner
def rotate(src: Bytes, degrees: float, fill: Bytes, wide: Pixels, dst: Bytes) -> None:
    """Turns about the centre, bilinear: a weighted sum of four neighbours, all channels in one multiplication each."""
    h, w, channels = src.shape
    a, b, c, d, e, f = rotation(degrees, h, w)
    widen(src, wide)
    flat = wide.reshape(-1)
    unit, half = 4294967296.0, np.int64(1) << 31  # coordinates are counted in 1 / 2^32, with one pixel of border
    right, down = np.int64(a * unit), np.int64(d * unit)
    stride = np.uint64(w + 2)
    for y in range(h):
        first, last = inside(a, b * (y + 0.5), c, float(w), w)
        start, stop = inside(d, e * (y + 0.5), f, float(h), w)
        start, stop = max(first, start), min(last, stop)
        if start >= stop:
            paint(dst, y, 0, w, fill)
            continue
        paint(dst, y, 0, start, fill)
        paint(dst, y, stop, w, fill)
        u = np.int64((a * (start + 0.5) + b * (y + 0.5) + c) * unit) + half
        v = np.int64((d * (start + 0.5) + e * (y + 0.5) + f) * unit) + half
        for j in range(start, stop):
            x = np.uint64(j)
            at = np.uint64(v >> 32) * stride + np.uint64(u >> 32)
            p, q = np.uint64(u >> 19 & 8191), np.uint64(v >> 19 & 8191)
            pq = p * q >> PART_BITS
            here, beside, under = flat[at], flat[at + ONE], flat[at + stride]
            # (1-p)(1-q) here + p(1-q) beside + (1-p)q under + pq across; what lanes borrow from each other cancels out.
            across = flat[at + stride + ONE] - beside - under + here
            total = (here << PART_BITS) + (beside - here) * p + (under - here) * q + across * pq
            dst[y, x, 0] = np.uint8(total >> PART_BITS)
            if channels == 3:
                dst[y, x, 1] = np.uint8(total >> GREEN)
                dst[y, x, 2] = np.uint8(total >> BLUE)
            u += right
            v += down


@inner
def rotation(degrees: float, h: int, w: int) -> tuple[float, float, float, float, float, float]:
    """The numbers (a, b, c, d, e, f) that turn an image about its centre, rounded to 15 places as in Pillow."""
    angle = -math.radians(degrees % 360.0)
    cos, sin = np.rint(math.cos(angle) * 1e15) / 1e15, np.rint(math.sin(angle) * 1e15) / 1e15
    x, y = w / 2.0, h / 2.0
    return cos, sin, (cos * -x + sin * -y) + x, -sin, cos, (-sin * -x + cos * -y) + y


@inner
def affine_nearest(
    src: Bytes, a: float, b: float, c: float, d: float, e: float, f: float, fill: Bytes, dst: Bytes
) -> None:
    """The nearest pixel, in Pillow's 16.16 fixed point: byte for byte the same."""
    h, w, channels = src.shape
    unit = 65536.0
    right_u, right_v = math.floor(a * unit + 0.5), math.floor(d * unit + 0.5)
    down_u, down_v = math.floor(b * unit + 0.5), math.floor(e * unit + 0.5)
    row_u, row_v = math.floor((c + a * 0.5 + b * 0.5) * unit + 0.5), math.floor((f + d * 0.5 + e * 0.5) * unit + 0.5)
    for y in range(h):
        u, v = row_u, row_v
        for x in range(w):
            i, j = v >> 16, u >> 16
            for k in range(channels):
                dst[y, x, k] = src[i, j, k] if 0 <= i < h and 0 <= j < w else fill[k]
            u += right_u
            v += right_v
        row_u += down_u
        row_v += down_v
