"""Slow references for the corruptions: one image, plain loops or SciPy, written from the definitions.

Each takes an image (H, W, C) uint8, `u` with u(n) the image's n-th uniform draw, and the constants of its severity, and
returns values of 0..255 before they are cut off to bytes.
"""

from __future__ import annotations

import colorsys
import io
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from scipy.stats import poisson

from rte.rng import fold

Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Draw = Callable[[int], float]

M64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(z: int) -> int:
    """The output function of SplitMix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def draws(seed: int, name: str, severity: int, index: int) -> Draw:
    """u(n) in [0, 1) of one image."""
    key = mixed(fold(seed, "corruption", name, severity) ^ mixed((GOLDEN + index) & M64))
    return lambda n: (mixed((key + n * GOLDEN) & M64) >> 11) / 2**53


def normal(u: Draw, n: int) -> float:
    return math.sqrt(-2 * math.log(1 - u(2 * n))) * math.cos(2 * math.pi * u(2 * n + 1))


def gaussian_noise(x: Bytes, u: Draw, sigma: float) -> Array:
    z = np.array([normal(u, n) for n in range(x.size)]).reshape(x.shape)
    return x + 255 * sigma * z


def speckle_noise(x: Bytes, u: Draw, sigma: float) -> Array:
    z = np.array([normal(u, n) for n in range(x.size)]).reshape(x.shape)
    return x + x * sigma * z


def shot_noise(x: Bytes, u: Draw, photons: float) -> Array:
    chance = np.array([u(n) for n in range(x.size)]).reshape(x.shape)
    return poisson.ppf(chance, x / 255 * photons) / photons * 255


def impulse_noise(x: Bytes, u: Draw, share: float) -> Array:
    result = x.astype(float).ravel()
    for n in range(x.size):
        if u(n) < share:
            result[n] = 255 if u(n) < share / 2 else 0
    return result.reshape(x.shape)


def gaussian(x: Array, sigma: float, mode: str = "nearest", truncate: float = 4.0) -> Array:
    return ndimage.gaussian_filter(x.astype(float), (sigma, sigma, 0), mode=mode, truncate=truncate)


def gaussian_blur(x: Bytes, u: Draw, sigma: float) -> Array:
    return gaussian(x, sigma)


def defocus_blur(x: Bytes, u: Draw, radius: float, smoothing: float) -> Array:
    reach, blur = (8, 1) if radius <= 8 else (int(radius), 2)
    disk = np.zeros((2 * reach + 1, 2 * reach + 1))
    for a in range(-reach, reach + 1):
        for b in range(-reach, reach + 1):
            disk[a + reach, b + reach] = a * a + b * b <= radius * radius
    taps = np.array([math.exp(-(k**2) / (2 * smoothing**2)) for k in range(-blur, blur + 1)])
    kernel = disk / disk.sum()
    for axis in (0, 1):
        kernel = ndimage.correlate1d(kernel, taps / taps.sum(), axis=axis, mode="mirror")
    return np.stack([ndimage.correlate(x[..., c].astype(float), kernel, mode="mirror") for c in range(x.shape[2])], -1)


def glass_blur(x: Bytes, u: Draw, sigma: float, shift: float, passes: float) -> Array:
    image, n, d = (gaussian(x, sigma) + 1e-6).astype(np.uint8), 0, int(shift)
    for _ in range(int(passes)):
        for row in range(x.shape[0] - d, d, -1):
            for col in range(x.shape[1] - d, d, -1):
                down, right = math.floor(2 * d * u(n)) - d, math.floor(2 * d * u(n + 1)) - d
                image[row, col] = image[row + down, col + right]
                n += 2
    return gaussian(image, sigma)


def smeared(x: Array, radius: float, sigma: float, degrees: float) -> Array:
    width = 2 * int(radius) + 1
    weights = [math.exp(-(i**2) / (2 * sigma**2)) for i in range(width)]
    total = np.zeros(x.shape)
    for i in range(width):
        down, right = (math.ceil(i * f(math.radians(degrees)) - 0.5) for f in (math.sin, math.cos))
        rows = np.clip(np.arange(x.shape[0]) + down, 0, x.shape[0] - 1)
        cols = np.clip(np.arange(x.shape[1]) + right, 0, x.shape[1] - 1)
        total += weights[i] / sum(weights) * x[rows][:, cols]
    return np.floor(total + 0.5)


def motion_blur(x: Bytes, u: Draw, radius: float, sigma: float) -> Array:
    return smeared(x.astype(float), radius, sigma, -45 + 90 * u(0))


def zoomed(x: Array, factor: float) -> Array:
    """The middle enlarged by linear splines, and cut to the old size again."""
    for axis in (0, 1):
        side = x.shape[axis]
        crop = math.ceil(side / factor)
        middle = np.take(x, np.arange(crop) + (side - crop) // 2, axis=axis)
        # "nearest", because by rounding the last point may lie a hair outside
        large = ndimage.zoom(middle, [factor if a == axis else 1 for a in range(x.ndim)], order=1, mode="nearest")
        trim = (large.shape[axis] - side) // 2
        x = np.take(large, np.arange(side) + trim, axis=axis)
    return x


def zoom_blur(x: Bytes, u: Draw, stop: float, step: float) -> Array:
    factors = np.arange(1, stop, step)
    return (x + sum(zoomed(x.astype(float), factor) for factor in factors)) / (len(factors) + 1)


def luma(x: Bytes) -> Array:
    return x.astype(float) if x.shape[2] == 1 else (x @ np.array([0.299, 0.587, 0.114]))[..., None]


def snow(x: Bytes, u: Draw, *row: float) -> Array:
    mean, std, factor, threshold, radius, sigma, share = row
    height, width = x.shape[:2]
    field = np.array([mean + std * normal(u, n) for n in range(height * width)]).reshape(height, width)
    field = zoomed(field, factor)
    field[field < threshold] = 0
    field = np.floor(np.clip(field, 0, 1) * 255 + 1e-6)
    field = smeared(field[..., None], radius, sigma, -135 + 90 * u(2 * height * width))
    return share * x + (1 - share) * np.maximum(x, 1.5 * luma(x) + 127.5) + field + field[::-1, ::-1]


def frost(x: Bytes, u: Draw, own: float, ice: float, pictures: list[Bytes]) -> Array:
    picture = pictures[math.floor(u(0) * len(pictures))]
    top, left = (math.floor(u(1 + a) * max(picture.shape[a] - x.shape[a], 1)) for a in (0, 1))
    rows, cols = (np.arange(x.shape[a]) + (top, left)[a] for a in (0, 1))
    window = picture.take(rows, axis=0, mode="wrap").take(cols, axis=1, mode="wrap")
    return own * x + ice * (luma(window) if x.shape[2] == 1 else window)


def plasma(u: Draw, decay: float, side: int) -> Array:
    field = np.zeros((side, side))
    step, amplitude, n = side, 100.0, 0
    while step >= 2:
        half, cells = step // 2, side // step
        noise = np.array([amplitude * amplitude * (2 * u(n + k) - 1) for k in range(3 * cells * cells)])
        n += 3 * cells * cells
        corner = field[::step, ::step]
        right, below = np.roll(corner, -1, 1), np.roll(corner, -1, 0)
        centre = (corner + right + below + np.roll(right, -1, 0)) / 4 + noise[: cells * cells].reshape(cells, cells)
        edges = noise[cells * cells :].reshape(cells, cells, 2)
        field[half::step, half::step] = centre
        field[::step, half::step] = (corner + right + centre + np.roll(centre, 1, 0)) / 4 + edges[..., 0]
        field[half::step, ::step] = (corner + below + centre + np.roll(centre, 1, 1)) / 4 + edges[..., 1]
        step, amplitude = half, amplitude / decay
    return (field - field.min()) / (field.max() - field.min())


def fog(x: Bytes, u: Draw, amount: float, decay: float) -> Array:
    side = 2
    while side < max(x.shape[:2]):
        side *= 2
    most = x.max() / 255
    veil = plasma(u, decay, side)[: x.shape[0], : x.shape[1], None]
    return 255 * (x / 255 + amount * veil) * most / (most + amount)


def in_hsv(x: Bytes, change: Callable[[float, float, float], tuple[float, float, float]]) -> Array:
    result = np.empty(x.shape)
    for place in np.ndindex(x.shape[:2]):
        red, green, blue = x[place] / 255
        result[place] = colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(red, green, blue)))
    return 255 * result


def brightness(x: Bytes, u: Draw, added: float) -> Array:
    if x.shape[2] == 1:
        return np.minimum(x + 255 * added, 255)
    return in_hsv(x, lambda h, s, v: (h, s, min(v + added, 1)))


def saturate(x: Bytes, u: Draw, gain: float, offset: float) -> Array:
    return in_hsv(x, lambda h, s, v: (h, min(gain * s + offset, 1), v)) if x.shape[2] == 3 else x.astype(float)


def contrast(x: Bytes, u: Draw, factor: float) -> Array:
    mean = x.mean(axis=(0, 1))
    return (x - mean) * factor + mean


def sampled(x: Array, y_at: Array, x_at: Array, mode: str) -> Array:
    parts = [ndimage.map_coordinates(x[..., c], [y_at, x_at], order=1, mode=mode) for c in range(x.shape[2])]
    return np.stack(parts, -1)


def elastic_transform(x: Bytes, u: Draw, *shares: float) -> Array:
    height, width = x.shape[:2]
    alpha, sigma, jitter = (share * min(height, width) for share in shares)
    reach = max(min(height, width) // 3, 1)
    start = np.array([width // 2, height // 2]) + reach * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = start + jitter * (2 * np.array([u(n) for n in range(6)]).reshape(3, 2) - 1)
    back = np.linalg.solve(np.column_stack([moved, np.ones(3)]), start)  # (moved, 1) @ back = start
    grid_y, grid_x = np.mgrid[:height, :width]
    origin = np.stack([grid_x, grid_y, np.ones((height, width))], -1) @ back
    tilted = sampled(x.astype(float), origin[..., 1], origin[..., 0], "mirror")
    noise = np.array([2 * u(6 + n) - 1 for n in range(2 * height * width)]).reshape(height, width, 2)
    across, along = (alpha * gaussian(noise, sigma, mode="reflect", truncate=3.0)).transpose(2, 0, 1)
    return sampled(tilted, grid_y + along, grid_x + across, "reflect")


def as_picture(x: Bytes) -> Image.Image:
    return Image.fromarray(x[..., 0] if x.shape[2] == 1 else x)


def pixelate(x: Bytes, u: Draw, scale: float) -> Array:
    height, width = x.shape[:2]
    small = as_picture(x).resize((max(int(width * scale), 1), max(int(height * scale), 1)), Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.BOX), float).reshape(x.shape)


def jpeg_compression(x: Bytes, u: Draw, quality: float) -> Array:
    file = io.BytesIO()
    as_picture(x).save(file, format="JPEG", quality=int(quality))
    return np.asarray(Image.open(io.BytesIO(file.getvalue())), float).reshape(x.shape)
