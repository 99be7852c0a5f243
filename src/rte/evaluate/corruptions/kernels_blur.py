"""Blurs. Images and results are (N, H, W, C) uint8; inside, one image is (H, W * C) float64 on the scale 0..255.

What lies outside an image is looked up in index arrays: rows[r + y] is the row that stands for row y, -r <= y < H + r.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rte.evaluate.corruptions.kernels_noise import Bytes, Floats, byte
from rte.evaluate.corruptions.kernels_random import Keys, uniform, whole
from rte.jit import inner, kernel

Indices = NDArray[np.int64]


@inner
def read(image: Bytes, values: Floats) -> None:
    """values (H, W * C) = image (H, W, C)."""
    src = image.reshape(values.shape)
    for y in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[y, j] = src[y, j]


@inner
def clear(values: Floats) -> None:
    """values = 0."""
    for y in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[y, j] = 0.0


@inner
def write(values: Floats, out: Bytes) -> None:
    """out (H, W, C) = values (H, W * C), cut off to bytes."""
    dst = out.reshape(values.shape)
    for y in range(values.shape[0]):
        for j in range(values.shape[1]):
            dst[y, j] = byte(values[y, j])


@inner
def pad(src: Floats, rows: Indices, cols: Indices, channels: int, padded: Floats) -> None:
    """padded[y, x] = src[rows[y], cols[x]], a pixel of `channels` values."""
    for y in range(rows.shape[0]):
        for x in range(cols.shape[0]):
            for c in range(channels):
                padded[y, x * channels + c] = src[rows[y], cols[x] * channels + c]


@inner
def add_shifted(padded: Floats, down: Indices, right: Indices, weights: Floats, channels: int, out: Floats) -> None:
    """out[y, x] = sum_k weights[k] padded[y + down[k], x + right[k]]."""
    clear(out)
    for y in range(out.shape[0]):
        row = out[y]
        for k in range(weights.shape[0]):
            weight, source = weights[k], padded[y + down[k], right[k] * channels :]
            for j in range(row.shape[0]):
                row[j] += weight * source[j]


@inner
def smooth(image: Floats, taps: Floats, rows: Indices, cols: Indices, channels: int, half: Floats) -> None:
    """`image` filtered along both axes with the taps, in place; `half` is scratch space of its shape."""
    clear(half)
    for y in range(image.shape[0]):
        for k in range(taps.shape[0]):
            weight, source, row = taps[k], image[rows[y + k]], half[y]
            for j in range(row.shape[0]):
                row[j] += weight * source[j]
    clear(image)
    for y in range(image.shape[0]):
        for k in range(taps.shape[0]):
            for x in range(image.shape[1] // channels):
                for c in range(channels):
                    image[y, x * channels + c] += taps[k] * half[y, cols[x + k] * channels + c]


@kernel
def gaussian_blur(images: Bytes, keys: Keys, taps: Floats, rows: Indices, cols: Indices, out: Bytes) -> None:
    """A Gaussian filter along both axes."""
    number, height, width, channels = images.shape
    values = np.empty((height, width * channels))
    half = np.empty_like(values)
    for n in range(number):
        read(images[n], values)
        smooth(values, taps, rows, cols, channels, half)
        write(values, out[n])


@kernel
def glass_blur(
    images: Bytes, keys: Keys, taps: Floats, rows: Indices, cols: Indices, shift: int, passes: int, out: Bytes
) -> None:
    """Gaussian filter; every pixel takes the colour of a neighbour -shift..shift-1 away in both axes; Gaussian filter.

    The published set meant to exchange the two pixels, but its program copied one over the other.
    """
    number, height, width, channels = images.shape
    values = np.empty((height, width * channels))
    half = np.empty_like(values)
    for n in range(number):
        read(images[n], values)
        smooth(values, taps, rows, cols, channels, half)
        write(values, out[n])
        image, draw = out[n], 0
        for _ in range(passes):
            for y in range(height - shift, shift, -1):
                for x in range(width - shift, shift, -1):
                    y_from = y + whole(keys[n], draw, 2 * shift) - shift
                    x_from = x + whole(keys[n], draw + 1, 2 * shift) - shift
                    draw += 2
                    for c in range(channels):
                        image[y, x, c] = image[y_from, x_from, c]
        read(image, values)
        smooth(values, taps, rows, cols, channels, half)
        write(values, image)


@kernel
def defocus_blur(
    images: Bytes, keys: Keys, weights: Floats, down: Indices, right: Indices, rows: Indices, cols: Indices, out: Bytes
) -> None:
    """The weighted mean over a disk, given as a list of shifts."""
    number, height, width, channels = images.shape
    values, padded = np.empty((height, width * channels)), np.empty((rows.shape[0], cols.shape[0] * channels))
    result = np.empty_like(values)
    for n in range(number):
        read(images[n], values)
        pad(values, rows, cols, channels, padded)
        add_shifted(padded, down, right, weights, channels, result)
        write(result, out[n])


@inner
def smear(
    values: Floats,
    angle: float,
    weights: Floats,
    rows: Indices,
    cols: Indices,
    channels: int,
    padded: Floats,
    out: Floats,
) -> None:
    """out = sum_i weights[i] values moved by i steps along `angle` degrees, rounded to bytes as ImageMagick does."""
    steps = weights.shape[0]
    down, right = np.empty(steps, np.int64), np.empty(steps, np.int64)
    for i in range(steps):
        down[i] = steps - 1 + math.ceil(i * math.sin(math.radians(angle)) - 0.5)
        right[i] = steps - 1 + math.ceil(i * math.cos(math.radians(angle)) - 0.5)
    pad(values, rows, cols, channels, padded)
    add_shifted(padded, down, right, weights, channels, out)
    for y in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[y, j] = math.floor(out[y, j] + 0.5)


@kernel
def motion_blur(images: Bytes, keys: Keys, weights: Floats, rows: Indices, cols: Indices, out: Bytes) -> None:
    """A one-sided smear at an angle from [-45, 45] degrees."""
    number, height, width, channels = images.shape
    values, padded = np.empty((height, width * channels)), np.empty((rows.shape[0], cols.shape[0] * channels))
    result = np.empty_like(values)
    for n in range(number):
        read(images[n], values)
        smear(values, -45.0 + 90.0 * uniform(keys[n], 0), weights, rows, cols, channels, padded, result)
        write(result, out[n])


@inner
def add_zoomed(
    values: Floats, rows: Indices, down: Floats, cols: Indices, right: Floats, channels: int, line: Floats, out: Floats
) -> None:
    """Adds `values` sampled at rows[y] + down[y] and cols[x] + right[x], linear in between; `line` is scratch space."""
    last_row, last_col = values.shape[0] - 1, values.shape[1] // channels - 1
    for y in range(out.shape[0]):
        upper, lower, part = values[rows[y]], values[min(rows[y] + 1, last_row)], down[y]
        for j in range(line.shape[0]):
            line[j] = upper[j] + part * (lower[j] - upper[j])
        for x in range(cols.shape[0]):
            here, there = cols[x] * channels, min(cols[x] + 1, last_col) * channels
            for c in range(channels):
                out[y, x * channels + c] += line[here + c] + right[x] * (line[there + c] - line[here + c])


@kernel
def zoom_blur(images: Bytes, keys: Keys, rows: Indices, down: Floats, cols: Indices, right: Floats, out: Bytes) -> None:
    """The mean of the image and of its Z zoomed copies; rows and down are (Z, H), cols and right (Z, W)."""
    number, height, width, channels = images.shape
    values, line = np.empty((height, width * channels)), np.empty(width * channels)
    total = np.empty_like(values)
    zooms = rows.shape[0]
    for n in range(number):
        read(images[n], values)
        read(images[n], total)
        for z in range(zooms):
            add_zoomed(values, rows[z], down[z], cols[z], right[z], channels, line, total)
        for y in range(height):
            for j in range(width * channels):
                total[y, j] /= zooms + 1
        write(total, out[n])
