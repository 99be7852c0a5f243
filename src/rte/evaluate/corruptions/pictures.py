"""Corruptions that are Pillow's own work: its JPEG coder and its box filter."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rte.evaluate.corruptions.kernels_random import Keys

Bytes = NDArray[np.uint8]


def jpeg_compression(images: Bytes, keys: Keys, quality: int, out: Bytes) -> None:
    """Each image saved as JPEG at `quality` and read again."""

    def recoded(picture: Image.Image) -> Image.Image:
        file = BytesIO()
        picture.save(file, "JPEG", quality=quality)
        return Image.open(file)

    _each(images, recoded, out)


def pixelate(images: Bytes, keys: Keys, scale: float, out: Bytes) -> None:
    """Each image reduced by `scale` and brought back to its size, both with the box filter."""
    height, width = images.shape[1:3]
    small = max(int(width * scale), 1), max(int(height * scale), 1)

    def coarsened(picture: Image.Image) -> Image.Image:
        return picture.resize(small, Image.Resampling.BOX).resize((width, height), Image.Resampling.BOX)

    _each(images, coarsened, out)


def _each(images: Bytes, change: Callable[[Image.Image], Image.Image], out: Bytes) -> None:
    grey = images.shape[3] == 1
    for src, dst in zip(images, out, strict=True):
        changed = np.asarray(change(Image.fromarray(src[..., 0] if grey else src)))
        dst[:] = changed[..., None] if grey else changed
