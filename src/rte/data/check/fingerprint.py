"""Fingerprints of images, by which copies are found: of the content, and of what a person sees.

The perceptual hash is the field's usual one of 64 bits: the image as 32 x 32 grey values, their cosine transform, and
of its 8 x 8 lowest frequencies whether each is above their median. Copies that were resized, recompressed or made a
little brighter differ in few bits.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rte.data.types import Pixels

SIDE, LOW = 32, 8
THUMB = 16
"""Side of the thumbnails by which images with similar hashes are compared."""
FLAT = 3.0
"""Images whose grey values deviate less than that are of one colour: their frequencies say nothing."""
WEIGHTS = (0.299, 0.587, 0.114)
Thumbs = NDArray[np.uint8]


def content(data: Any) -> bytes:
    """A name for bytes that only equal ones share, for all that chance can do."""
    return blake2b(data, digest_size=16).digest()


def small(pixels: Pixels) -> NDArray[np.float32]:
    """An image (h, w, C) as 32 x 32 grey values, each the mean of its part of the image."""
    image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0]).convert("L")
    if image.size != (SIDE, SIDE):
        image = image.resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.asarray(image, np.float32)


def small_block(pixels: Pixels) -> NDArray[np.float32]:
    """`small` of a block of images of one size, (B, h, w, C)."""
    if pixels.shape[1:3] != (SIDE, SIDE):
        return np.stack([small(image) for image in pixels])
    if pixels.shape[3] == 1:
        return pixels[..., 0].astype(np.float32)
    return np.rint(pixels @ np.array(WEIGHTS, np.float32))


def perceptual(grey: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The perceptual hashes (B,) of images (B, 32, 32)."""
    basis = _cosines()
    low = np.einsum("ui,bij,vj->buv", basis, grey, basis, optimize=True).reshape(len(grey), LOW * LOW)
    bits = low > np.median(low, axis=1, keepdims=True)
    return np.packbits(bits, axis=1).view(">u8")[:, 0].astype(np.uint64)


def thumbnails(grey: NDArray[np.float32]) -> Thumbs:
    """(B, 256): images (B, 32, 32) as 16 x 16 grey values."""
    step = SIDE // THUMB
    means: NDArray[np.float32] = grey.reshape(-1, THUMB, step, THUMB, step).mean((2, 4))
    return means.reshape(-1, THUMB * THUMB).astype(np.uint8)


def likeness(a: Thumbs, b: Thumbs) -> NDArray[np.float32]:
    """The correlation (B,) of thumbnails (B, 256), which brightness and contrast do not change."""
    x, y = (part.astype(np.float32) - part.mean(1, keepdims=True, dtype=np.float32) for part in (a, b))
    length = np.sqrt((x * x).sum(1) * (y * y).sum(1))
    return np.asarray((x * y).sum(1) / np.maximum(length, 1e-6), np.float32)


def is_flat(thumbs: Thumbs) -> NDArray[np.bool_]:
    """Which thumbnails are of one colour."""
    return np.asarray(thumbs.std(1, dtype=np.float32) < FLAT)


@cache
def _cosines() -> NDArray[np.float32]:
    """Rows of the cosine transform: cos(pi (2 i + 1) u / 64) for the lowest frequencies u, (8, 32)."""
    u, i = np.arange(LOW)[:, None], np.arange(SIDE)
    return np.cos(np.pi * (2 * i + 1) * u / (2 * SIDE)).astype(np.float32)
