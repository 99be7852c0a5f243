"""Brightness, contrast, saturation, elastic deformation. Images and results are (N, H, W, C) uint8."""

from __future__ import annotations

import math

import numpy as np

from rte.evaluate.corruptions.kernels_blur import Indices, read, smooth, write
from rte.evaluate.corruptions.kernels_noise import Bytes, Floats, byte
from rte.evaluate.corruptions.kernels_random import Keys, uniform
from rte.jit import inner, kernel


@kernel
def brightness(images: Bytes, keys: Keys, added: float, out: Bytes) -> None:
    """V of HSV plus `added`, at most 1: all channels times V'/V, and black becomes the grey V'."""
    number, height, width, channels = images.shape
    for n in range(number):
        for y in range(height):
            for x in range(width):
                most = images[n, y, x].max()
                value = min(most + 255.0 * added, 255.0)
                for c in range(channels):
                    out[n, y, x, c] = byte(images[n, y, x, c] * (value / most) if most else value)


@kernel
def contrast(images: Bytes, keys: Keys, factor: float, out: Bytes) -> None:
    """(x - m) * factor + m, m the mean of that channel of that image."""
    number, height, width, channels = images.shape
    for n in range(number):
        for c in range(channels):
            total = 0
            for y in range(height):
                for x in range(width):
                    total += images[n, y, x, c]
            mean = total / (height * width)
            for y in range(height):
                for x in range(width):
                    out[n, y, x, c] = byte((images[n, y, x, c] - mean) * factor + mean)


@kernel
def saturate(images: Bytes, keys: Keys, gain: float, offset: float, out: Bytes) -> None:
    """S of HSV becomes gain * S + offset, clipped to 0..1: V - (V - x) S'/S; grey has the hue of red. RGB only."""
    number, height, width, channels = images.shape
    for n in range(number):
        for y in range(height):
            for x in range(width):
                most, least = images[n, y, x].max(), images[n, y, x].min()
                old = (most - least) / most if most else 0.0
                new = min(max(gain * old + offset, 0.0), 1.0)
                for c in range(channels):
                    if old > 0.0:
                        value = most - (most - images[n, y, x, c]) * (new / old)
                    else:
                        value = most * (1.0 if c == 0 else 1.0 - new)
                    out[n, y, x, c] = byte(value)


@inner
def folded(j: int, size: int, twice: bool) -> int:
    """The index inside 0..size-1 that a mirror at each end shows at j; the last pixel is repeated if `twice`."""
    period = 2 * size if twice else max(2 * size - 2, 1)
    j = j % period
    return j if j < size else period - j - (1 if twice else 0)


@inner
def sample(values: Floats, y: float, x: float, channels: int, twice: bool, out: Floats) -> None:
    """out (C,) = values (H, W * C) at (y, x), linear in between, mirrored outside."""
    height, width = values.shape[0], values.shape[1] // channels
    top, left = math.floor(y), math.floor(x)
    down, right = y - top, x - left
    upper, lower = values[folded(top, height, twice)], values[folded(top + 1, height, twice)]
    here, there = folded(left, width, twice) * channels, folded(left + 1, width, twice) * channels
    for c in range(channels):
        first = upper[here + c] + right * (upper[there + c] - upper[here + c])
        second = lower[here + c] + right * (lower[there + c] - lower[here + c])
        out[c] = first + down * (second - first)


@inner
def tilt(key: np.uint64, jitter: float, height: int, width: int, inverse: Floats) -> None:
    """The affine map that moves three points by U(-jitter, jitter) in both axes, as what leads back.

    inverse (2, 3) @ (x, y, 1) is the place in the image that pixel (x, y) of the result shows.
    """
    reach = max(min(height, width) // 3, 1)
    x, y = float(width // 2), float(height // 2)
    from_x, from_y = (x + reach, x + reach, x - reach), (y + reach, y - reach, y - reach)
    to_x, to_y = np.empty(3), np.empty(3)
    for k in range(3):
        to_x[k] = from_x[k] + jitter * (2.0 * uniform(key, 2 * k) - 1.0)
        to_y[k] = from_y[k] + jitter * (2.0 * uniform(key, 2 * k + 1) - 1.0)
    ax, ay, bx, by = to_x[1] - to_x[0], to_y[1] - to_y[0], to_x[2] - to_x[0], to_y[2] - to_y[0]
    area = ax * by - bx * ay
    if abs(area) < 1e-6:  # the three points fell on one line, where no map leads back
        area = 1e-6
    for row in range(2):
        source = from_x if row == 0 else from_y
        first, second = source[1] - source[0], source[2] - source[0]
        inverse[row, 0] = (first * by - second * ay) / area
        inverse[row, 1] = (second * ax - first * bx) / area
        inverse[row, 2] = source[0] - inverse[row, 0] * to_x[0] - inverse[row, 1] * to_y[0]


@kernel
def elastic_transform(
    images: Bytes, keys: Keys, alpha: float, jitter: float, taps: Floats, rows: Indices, cols: Indices, out: Bytes
) -> None:
    """A random affine map, then each pixel taken from alpha * (smoothed U(-1, 1)) pixels away in both axes."""
    number, height, width, channels = images.shape
    values, across = np.empty((height, width * channels)), np.empty((height, width))
    tilted, along, half = np.empty_like(values), np.empty_like(across), np.empty_like(across)
    inverse, pixel = np.empty((2, 3)), np.empty(channels)
    for n in range(number):
        read(images[n], values)
        tilt(keys[n], jitter, height, width, inverse)
        for y in range(height):
            for x in range(width):
                x_from = inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]
                y_from = inverse[1, 0] * x + inverse[1, 1] * y + inverse[1, 2]
                sample(values, y_from, x_from, channels, False, pixel)
                for c in range(channels):
                    tilted[y, x * channels + c] = pixel[c]
        if alpha == 0.0:
            write(tilted, out[n])
            continue
        for y in range(height):
            for x in range(width):
                draw = 6 + 2 * (y * width + x)  # the first six are those of the affine map
                across[y, x] = alpha * (2.0 * uniform(keys[n], draw) - 1.0)
                along[y, x] = alpha * (2.0 * uniform(keys[n], draw + 1) - 1.0)
        smooth(across, taps, rows, cols, 1, half)
        smooth(along, taps, rows, cols, 1, half)
        for y in range(height):
            for x in range(width):
                sample(tilted, y + along[y, x], x + across[y, x], channels, True, pixel)
                for c in range(channels):
                    out[n, y, x, c] = byte(pixel[c])
