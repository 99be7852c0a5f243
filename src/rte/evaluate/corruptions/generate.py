"""Images corrupted on the fly: the same image, seed, corruption and severity always give the same result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Pixels
from rte.errors import DataError
from rte.evaluate.corruptions.constants import constants
from rte.evaluate.corruptions.kernels_random import Keys, image_keys
from rte.evaluate.corruptions.recipes import RECIPES, Site
from rte.rng import fold

Index = NDArray[np.int64]


def corrupt(
    images: Pixels,
    name: str,
    severity: int,
    *,
    seed: int,
    index: Index | None = None,
    frost: Path | None = None,
    threads: int = 1,
) -> Pixels:
    """Images (N, H, W, C) uint8, C of 1 or 3, corrupted at severity 1 to 5; same shape and type.

    What becomes of an image depends on seed, name, severity, the image and its dataset index (`index` (N,), by default
    0..N-1), neither on the other images nor on `threads`. `frost` is a folder with the photographs of the published
    sets; by default the frost is procedural.
    """
    _check(images, index)
    size = images.shape[1], images.shape[2]
    row = constants(name, severity, size)
    recipe = RECIPES[name]
    arguments = recipe.arguments(Site(size, frost), row)
    # Numba compiles anew for read-only or strided arrays, which takes longer than the copy.
    source = np.require(images, requirements=["C", "W"])
    keys = _keys(fold(int(seed), "corruption", name, int(severity)), len(images), index)
    result = np.empty_like(source)

    def work(part: slice) -> None:
        recipe.kernel(source[part], keys[part], *arguments, result[part])

    parts = _parts(len(source), threads)
    if len(parts) == 1:
        work(parts[0])
    else:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(work, parts))
    return result


def _keys(key: int, number: int, index: Index | None) -> Keys:
    rows = np.arange(number) if index is None else index
    keys = np.empty(number, np.uint64)
    image_keys(np.uint64(key), np.require(rows, np.int64, ["C", "W"]), keys)
    return keys


def _parts(number: int, threads: int) -> list[slice]:
    """0..number-1 in one even part per thread, none of them empty unless there is nothing at all."""
    cuts = np.linspace(0, number, max(min(threads, number), 1) + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts)]


def _check(images: Pixels, index: Index | None) -> None:
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape[1:]:
        raise DataError(
            f"images to corrupt have dtype {images.dtype} and shape {images.shape}; "
            "give uint8 images of shape (N, H, W, 1) or (N, H, W, 3)."
        )
    if index is not None and index.shape != (len(images),):
        raise DataError(f"index has shape {index.shape} for {len(images)} images; give one dataset index per image.")
