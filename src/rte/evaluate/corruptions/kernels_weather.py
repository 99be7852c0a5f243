"""Snow, frost, fog. Images and results are (N, H, W, C) uint8 on the scale 0..255; `keys` is (N,)."""

from __future__ import annotations

import numpy as np

from rte.evaluate.corruptions.kernels_blur import Indices, add_zoomed, clear, smear
from rte.evaluate.corruptions.kernels_noise import Bytes, Floats, byte
from rte.evaluate.corruptions.kernels_random import Keys, normal, uniform, whole
from rte.jit import inner, kernel


@inner
def grey(red: float, green: float, blue: float) -> float:
    """The brightness of a colour."""
    return 0.299 * red + 0.587 * green + 0.114 * blue


@inner
def flakes(key: np.uint64, mean: float, std: float, field: Floats) -> None:
    """field (H, W) = N(mean, std^2)."""
    for y in range(field.shape[0]):
        for x in range(field.shape[1]):
            field[y, x] = mean + std * normal(key, y * field.shape[1] + x)


@inner
def keep_above(threshold: float, field: Floats) -> None:
    """Values of 0..1 below the threshold become 0, the others bytes."""
    for y in range(field.shape[0]):
        for x in range(field.shape[1]):
            field[y, x] = byte(255.0 * field[y, x]) if field[y, x] >= threshold else 0.0


@kernel
def snow(
    images: Bytes,
    keys: Keys,
    mean: float,
    std: float,
    threshold: float,
    share: float,
    zoom_rows: Indices,
    down: Floats,
    zoom_cols: Indices,
    right: Floats,
    weights: Floats,
    rows: Indices,
    cols: Indices,
    out: Bytes,
) -> None:
    """share * x + (1 - share) * max(x, 1.5 grey(x) + 0.5) + flakes + flakes turned by 180 degrees.

    The flakes are a field of noise, zoomed, cut below the threshold, and smeared at an angle from [-135, -45] degrees.
    """
    number, height, width, channels = images.shape
    field = np.empty((height, width))
    zoomed, fallen = np.empty_like(field), np.empty_like(field)
    padded, line = np.empty((rows.shape[0], cols.shape[0])), np.empty(width)
    for n in range(number):
        angle = -135.0 + 90.0 * uniform(keys[n], 2 * height * width)  # the draws before it are the field's
        flakes(keys[n], mean, std, field)
        clear(zoomed)
        add_zoomed(field, zoom_rows, down, zoom_cols, right, 1, line, zoomed)
        keep_above(threshold, zoomed)
        smear(zoomed, angle, weights, rows, cols, 1, padded, fallen)
        for y in range(height):
            for x in range(width):
                pixel = images[n, y, x]
                light = float(pixel[0]) if channels == 1 else grey(pixel[0], pixel[1], pixel[2])
                flake = fallen[y, x] + fallen[height - 1 - y, width - 1 - x]
                for c in range(channels):
                    whitened = max(float(pixel[c]), 1.5 * light + 127.5)
                    out[n, y, x, c] = byte(share * pixel[c] + (1.0 - share) * whitened + flake)


@kernel
def frost(
    images: Bytes, keys: Keys, own: float, ice: float, texture: Bytes, starts: Indices, sizes: Indices, out: Bytes
) -> None:
    """own * x + ice * (a random window of a random texture).

    Texture t of sizes[t] = (h, w) is texture[starts[t] : starts[t] + h * w], pixel by pixel (P, 3); a window larger
    than its texture goes round.
    """
    number, height, width, channels = images.shape
    for n in range(number):
        t = whole(keys[n], 0, starts.shape[0])
        tall, wide = sizes[t, 0], sizes[t, 1]
        top = whole(keys[n], 1, max(tall - height, 1))
        left = whole(keys[n], 2, max(wide - width, 1))
        for y in range(height):
            line = starts[t] + (top + y) % tall * wide
            for x in range(width):
                colour = texture[line + (left + x) % wide]
                if channels == 1:
                    out[n, y, x, 0] = byte(own * images[n, y, x, 0] + ice * grey(colour[0], colour[1], colour[2]))
                else:
                    for c in range(channels):
                        out[n, y, x, c] = byte(own * images[n, y, x, c] + ice * colour[c])


@inner
def plasma(key: np.uint64, decay: float, field: Floats) -> None:
    """A fractal of the diamond-square method on a torus, scaled to 0..1; `field` is square, its side 2, 4, 8, ...

    Each new point is the mean of its four neighbours plus a * U(-a, a), where a starts at 100 and is divided by `decay`
    at every halving of the step: the roughness is quadratic in a, as in the published sets.
    """
    side = field.shape[0]
    field[0, 0] = 0.0
    step, wobble, draw = side, 100.0, 0
    while step >= 2:
        half = step // 2
        for y in range(0, side, step):
            for x in range(0, side, step):
                below, beside = (y + step) % side, (x + step) % side
                total = field[y, x] + field[below, x] + field[y, beside] + field[below, beside]
                field[y + half, x + half] = total / 4 + wobble * wobble * (2.0 * uniform(key, draw) - 1.0)
                draw += 1
        for y in range(0, side, step):
            for x in range(0, side, step):
                below, beside = (y + step) % side, (x + step) % side
                total = field[y + half, x + half] + field[y - half, x + half] + field[y, x] + field[y, beside]
                field[y, x + half] = total / 4 + wobble * wobble * (2.0 * uniform(key, draw) - 1.0)
                total = field[y + half, x + half] + field[y + half, x - half] + field[y, x] + field[below, x]
                field[y + half, x] = total / 4 + wobble * wobble * (2.0 * uniform(key, draw + 1) - 1.0)
                draw += 2
        step, wobble = half, wobble / decay
    low = high = 0.0
    for y in range(side):
        for x in range(side):
            low, high = min(low, field[y, x]), max(high, field[y, x])
    for y in range(side):
        for x in range(side):
            field[y, x] = (field[y, x] - low) / (high - low)


@kernel
def fog(images: Bytes, keys: Keys, amount: float, decay: float, side: int, out: Bytes) -> None:
    """(x + amount * plasma) * max(x) / (max(x) + amount), the same plasma for all channels."""
    number, height, width, channels = images.shape
    field = np.empty((side, side))
    for n in range(number):
        plasma(keys[n], decay, field)
        most = 0.0
        for y in range(height):
            for x in range(width):
                for c in range(channels):
                    most = max(most, images[n, y, x, c] / 255.0)
        factor = most / (most + amount)
        for y in range(height):
            for x in range(width):
                veil = 255.0 * amount * field[y, x]
                for c in range(channels):
                    out[n, y, x, c] = byte((images[n, y, x, c] + veil) * factor)
