"""Thumbnails in sheets of a hundred, as large as the bytes allow."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

from rte.data.types import Images, Pixels

ACROSS = 10
"""Thumbnails in a row of a sheet, and rows in it."""
PER_SHEET = ACROSS * ACROSS
SIDES = (128, 96, 80, 64, 48, 40, 32, 24, 16, 8)
QUALITIES = (90, 80, 65, 50, 35)
LOSSLESS = 101
"""Stands for a quality: small pictures that are few lose nothing."""
FEW = 1000
GROUND = 136
"""The grey around pictures that are no squares."""


@dataclass(frozen=True)
class Sheets:
    """Thumbnails of `side` pixels in sheets, data URIs; the first `shown` examples have one."""

    side: int = 0
    shown: int = 0
    sheets: list[str] = field(default_factory=list)


def sheets(images: Images, index: NDArray[np.int64], *, most: int, seconds: float = 600.0) -> Sheets:
    """Thumbnails of the images at `index`, in at most so many bytes and about so many seconds; the first ones, then."""
    if not len(index):
        return Sheets()
    deadline = time.monotonic() + seconds
    sample = index[np.linspace(0, len(index) - 1, min(len(index), PER_SHEET)).astype(np.int64)]
    looked = [np.asarray(pixels) for pixels in images.fetch(sample)]
    native = max(max(pixels.shape[:2]) for pixels in looked)
    side, quality = _fitting(looked, native, len(index), most)
    out: list[str] = []
    used = shown = 0
    for tiles in _tiles(images, index, side):
        sheet = _sheet(tiles, side, quality)
        used += len(sheet)
        if used > most:
            break
        out.append(sheet)
        shown += len(tiles)
        if time.monotonic() > deadline:
            break
    return Sheets(side, shown, out)


def _fitting(looked: list[Pixels], native: int, n: int, most: int) -> tuple[int, int]:
    """The largest side, and for it the best quality, with which n thumbnails fit, by a sample of them."""
    sides = [side for side in SIDES if side < native]
    for side in [min(native, SIDES[0]), *sides]:
        tiles = [thumbnail(pixels, side) for pixels in looked]
        for quality in ([LOSSLESS] if n <= FEW else []) + list(QUALITIES[:3] if side > 24 else QUALITIES):
            if len(_sheet(tiles, side, quality)) / len(tiles) * n * 1.05 <= most:
                return side, quality
    return min(native, SIDES[-1]), QUALITIES[-1]


def _tiles(images: Images, index: NDArray[np.int64], side: int) -> Iterator[list[Image.Image]]:
    for start in range(0, len(index), PER_SHEET):
        yield [thumbnail(np.asarray(pixels), side) for pixels in images.fetch(index[start : start + PER_SHEET])]


def thumbnail(pixels: Pixels, side: int) -> Image.Image:
    """A picture (h, w, C) in the middle of a square."""
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).convert("RGB")
    if max(picture.size) > side:
        picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    if picture.size == (side, side):
        return picture
    square = Image.new("RGB", (side, side), (GROUND, GROUND, GROUND))
    square.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return square


def _sheet(tiles: list[Image.Image], side: int, quality: int) -> str:
    rows = -(-len(tiles) // ACROSS)
    sheet = Image.new("RGB", (side * min(ACROSS, len(tiles)), side * rows))
    for k, tile in enumerate(tiles):
        sheet.paste(tile, (k % ACROSS * side, k // ACROSS * side))
    file = io.BytesIO()
    if not features.check("webp"):
        sheet.save(file, "JPEG", quality=min(quality, 95))
        return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
    if quality == LOSSLESS:
        sheet.save(file, "WEBP", lossless=True, quality=30, method=2)
    else:
        sheet.save(file, "WEBP", quality=quality, method=2)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
