"""Textures of frost on glass: made here, or the photographs of the published sets where the user has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from rte.errors import DataError
from rte.rng import generator

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Colour = tuple[float, float, float]

# The published sets list a sixth photograph, but their programs never draw it.
PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
SHRINK = 5
"""Small images are laid over photographs reduced to a fifth of their size, large ones over the full size."""

# Mean colour and spread (R, G, B) of the five photographs at a fifth of their size: what makes frost bright or dark.
TINTS: tuple[tuple[Colour, Colour], ...] = (
    ((77.5, 149.0, 165.7), (26.8, 16.4, 15.3)),
    ((200.8, 205.4, 214.5), (21.4, 22.1, 22.6)),
    ((200.8, 205.4, 214.5), (21.4, 22.1, 22.6)),
    ((138.0, 153.2, 165.6), (29.0, 29.0, 30.2)),
    ((112.3, 123.3, 134.7), (44.3, 43.2, 41.6)),
)
SIDE = 128
NEEDLES = 3000


@dataclass(frozen=True)
class Textures:
    """Pictures of several sizes in one array: picture t is pixels[starts[t] : starts[t] + h * w], sizes[t] = (h, w)."""

    pixels: Bytes
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


def textures(folder: Path | None, small: bool) -> Textures:
    """The photographs in `folder`, or procedural ones; `small` for images treated as CIFAR-10-C does."""
    return _painted(1 if small else SHRINK) if folder is None else _photographed(Path(folder), SHRINK if small else 1)


@cache
def _painted(scale: int) -> Textures:
    return packed([paint(number, scale) for number in range(len(TINTS))])


@cache
def _photographed(folder: Path, shrink: int) -> Textures:
    # Bilinear reduction to exactly a fifth, as the published programs do it, takes the middle pixel of every five.
    return packed([photograph(folder / name)[shrink // 2 :: shrink, shrink // 2 :: shrink] for name in PHOTOGRAPHS])


def photograph(path: Path) -> Bytes:
    """One picture, (h, w, 3)."""
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise DataError(
            f"{path} is missing or no picture, but the folder for frost must hold {', '.join(PHOTOGRAPHS)}; "
            "see docs/corruptions.md for where to get them, or leave the folder out for procedural frost."
        ) from error


def packed(pictures: Sequence[Bytes]) -> Textures:
    """Pictures (h, w, 3) one after another."""
    sizes = np.array([picture.shape[:2] for picture in pictures], np.int64)
    ends = sizes.prod(axis=1).cumsum()
    pixels = np.concatenate([picture.reshape(-1, 3) for picture in pictures])
    return Textures(pixels, np.concatenate([[0], ends[:-1]]).astype(np.int64), sizes)


def paint(number: int, scale: int) -> Bytes:
    """Procedural frost in the colours of photograph `number`, (128 scale, 128 scale, 3), seamless at its edges.

    Clouds, needles of ice and grain, each of unit variance, in shares that give the photographs' correlation between
    neighbouring pixels (about 0.6 at one pixel, 0.4 at eight).
    """
    side = SIDE * scale
    clouds, ice = coarse(number, side), needles(number, side, scale)
    grain = generator(0, "frost grain", number).standard_normal((side, side))
    field = standardised(0.6 * clouds + 0.6 * ice + 0.4 * grain)
    mean, spread = (np.array(part) for part in TINTS[number])
    painted: Bytes = np.clip(mean + spread * field[..., None], 0, 255).astype(np.uint8)
    return painted


def coarse(number: int, side: int) -> Floats:
    """Clouds: noise whose amplitude falls as 1/f^1.5, (side, side)."""
    noise = np.fft.rfft2(generator(0, "frost clouds", number).standard_normal((side, side)))
    f = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
    f[0, 0] = np.inf
    return standardised(np.fft.irfft2(noise / f**1.5, (side, side)))


def needles(number: int, side: int, scale: int) -> Floats:
    """Straight crystals of random place, direction, brightness and length (2 to 8 pixels times `scale`)."""
    draw = generator(0, "frost needles", number)
    count = NEEDLES * scale  # on an area of scale^2, each of them longer by scale: the same share is covered
    start = draw.uniform(0, side, (2, count, 1))
    angle = draw.uniform(0, np.pi, (count, 1))
    length = draw.uniform(2 * scale, 8 * scale, (count, 1))
    light = draw.standard_normal((count, 1))
    # Two steps to the pixel leave no gap; beyond a needle's own length its brightness is 0.
    t = np.arange(0, 8 * scale, 0.5)
    y = (start[0] + t * np.sin(angle)).astype(np.int64) % side
    x = (start[1] + t * np.cos(angle)).astype(np.int64) % side
    field = np.zeros((side, side))
    np.add.at(field, (y, x), light * (t < length))
    return standardised(field)


def standardised(field: Floats) -> Floats:
    """The field shifted and scaled to mean 0 and variance 1."""
    scaled: Floats = (field - field.mean()) / field.std()
    return scaled
