"""Every example read once: whether that works, how large it is, and its fingerprints."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data.check import fingerprint
from rte.data.files import FileImages, look
from rte.data.ids import whole
from rte.data.types import Images, Source, Vectors
from rte.errors import DataError

BLOCK = 128
REDUCED = 64
"""Images are decoded with about so many pixels on their shorter side, which is enough for a fingerprint."""
Progress = Callable[[int], None]
"""Told how many more examples have been read."""


@dataclass
class Scan:
    """What was read of N examples. `hashes`, `thumbs` and `sizes` are of images alone, (N,), (N, 256) and (N, 2)."""

    content: list[bytes]
    unreadable: dict[int, str] = field(default_factory=dict)
    """Examples that cannot be read, and the sentence on each."""
    sizes: NDArray[np.int32] | None = None
    grey: int = 0
    hashes: NDArray[np.uint64] | None = None
    thumbs: NDArray[np.uint8] | None = None
    missing: int = 0
    """Vectors with NaN or infinite numbers."""
    constant: int = 0
    """Numbers that are the same in every vector."""


def scan(source: Source, progress: Progress = lambda n: None) -> Scan:
    """Read all examples, by as many threads as there are cores."""
    if isinstance(source, Vectors):
        return _vectors(source, progress)
    if not isinstance(source, Images):
        return _plain(source, progress)
    return _images(source, progress)


def _images(source: Images, progress: Progress) -> Scan:
    n = len(source)
    found = Scan(
        [b""] * n, sizes=np.zeros((n, 2), np.int32), hashes=np.zeros(n, np.uint64),
        thumbs=np.zeros((n, fingerprint.THUMB**2), np.uint8),
    )  # fmt: skip
    assert found.sizes is not None
    assert found.hashes is not None
    assert found.thumbs is not None
    below, rows = whole(source)
    read: Callable[[Any, NDArray[np.int64]], _Block] = _of_files if isinstance(below, FileImages) else _of_others
    starts = iter(range(0, n, BLOCK))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        coming = [pool.submit(read, below, rows[start : start + BLOCK]) for start in islice(starts, 8)]
        done = 0
        while coming:
            block = coming.pop(0).result()
            coming += [pool.submit(read, below, rows[start : start + BLOCK]) for start in islice(starts, 1)]
            part = slice(done, done + len(block.content))
            found.content[part], found.sizes[part] = block.content, block.sizes
            found.thumbs[part] = fingerprint.thumbnails(block.grey)
            found.hashes[part] = fingerprint.perceptual(block.grey)
            found.unreadable |= {done + i: why for i, why in block.unreadable.items()}
            found.grey += block.greys
            done = part.stop
            progress(len(block.content))
    return found


@dataclass
class _Block:
    content: list[bytes]
    sizes: NDArray[np.int32]
    grey: NDArray[np.float32]
    unreadable: dict[int, str]
    greys: int = 0


def _of_files(source: Any, rows: NDArray[np.int64]) -> _Block:
    block = _Block([], np.zeros((len(rows), 2), np.int32), np.zeros((len(rows), 32, 32), np.float32), {})
    for i, row in enumerate(rows):
        path = source.paths[int(row)]
        try:
            with open(path, "rb") as file:
                data = file.read()
            block.content.append(fingerprint.content(data))
            pixels, block.sizes[i], grey = look(io.BytesIO(data), 3, REDUCED, source.megapixels, called=path)
        except (DataError, OSError) as error:
            block.content[i:] = [b""]
            why = str(error) if isinstance(error, DataError) else f"{path} cannot be read ({error.strerror})."
            block.unreadable[i] = why
            block.sizes[i] = 0
            continue
        block.greys += grey
        block.grey[i] = fingerprint.small(pixels)
    return block


def _of_others(source: Images, rows: NDArray[np.int64]) -> _Block:
    """Of images in memory, or in files that hold many."""
    if source.size is not None:
        pixels = np.asarray(source.fetch(rows))
        names = [fingerprint.content(np.ascontiguousarray(image)) for image in pixels]
        sizes = np.full((len(rows), 2), source.size, np.int32)
        return _Block(names, sizes, fingerprint.small_block(pixels), {}, len(rows) * (source.channels == 1))
    block = _Block([], np.zeros((len(rows), 2), np.int32), np.zeros((len(rows), 32, 32), np.float32), {})
    for i, row in enumerate(rows):
        try:
            pixels = source.fetch(row[None])[0]
        except DataError as error:
            block.content.append(b"")
            block.unreadable[i] = str(error)
            continue
        block.content.append(fingerprint.content(np.ascontiguousarray(pixels)))
        block.sizes[i], block.grey[i] = pixels.shape[:2], fingerprint.small(pixels)
        block.greys += source.channels == 1
    return block


def _vectors(source: Vectors, progress: Progress) -> Scan:
    """Vectors as they are stored, since those with missing numbers are refused where they are fetched."""
    below, rows = whole(source)
    values = getattr(below, "values", None)
    found = Scan([])
    low = high = np.zeros(0)
    for part in _parts(rows, 16 * BLOCK):
        block = np.asarray(source.fetch(part) if values is None else values[part])
        found.content += [fingerprint.content(np.ascontiguousarray(row)) for row in block]
        found.missing += int((~np.isfinite(block)).any(axis=1).sum())
        ends = block.min(0), block.max(0)
        low, high = ends if not len(low) else (np.minimum(low, ends[0]), np.maximum(high, ends[1]))
        progress(len(part))
    found.constant = int((low == high).sum())
    return found


def _plain(source: Source, progress: Progress) -> Scan:
    """Examples of any other kind: what can be read, and which are equal."""
    found = Scan([])
    for part in _parts(np.arange(len(source)), BLOCK):
        for one in source.fetch(part):
            found.content.append(fingerprint.content(np.ascontiguousarray(one)))
            found.missing += bool(np.isnan(one).any()) if getattr(one, "dtype", np.dtype("O")).kind == "f" else 0
        progress(len(part))
    return found


def _parts(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
