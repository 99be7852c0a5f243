"""Examples that are exact copies of one another and have different labels."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data.files import FileImages
from rte.data.ids import whole
from rte.data.types import Source

BLOCK = 1000


def conflicting(source: Source, y: NDArray[np.int64]) -> dict[int, int]:
    """{i: j}: example i is a copy of j, the first of its kind, and some copy of it has another label.

    Files are compared by their bytes, and only those of one size are read; other examples by what they hold.
    """
    groups: dict[bytes, list[int]] = {}
    for i, key in _keys(source):
        groups.setdefault(key, []).append(i)
    found: dict[int, int] = {}
    for members in groups.values():
        if len(members) > 1 and len(set(y[members].tolist())) > 1:
            found |= dict.fromkeys(members[1:], members[0]) | {members[0]: members[1]}
    return found


def _keys(source: Source) -> Iterator[tuple[int, bytes]]:
    below, rows = whole(source)
    if isinstance(below, FileImages):
        yield from _of_files([below.paths[int(row)] for row in rows])
        return
    for start in range(0, len(source), BLOCK):
        part = np.arange(start, min(start + BLOCK, len(source)))
        for i, value in zip(part.tolist(), below.fetch(rows[part]), strict=True):
            yield i, hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()


def _of_files(paths: list[str]) -> Iterator[tuple[int, bytes]]:
    sizes: dict[int, list[int]] = {}
    for i, path in enumerate(paths):
        try:
            sizes.setdefault(os.path.getsize(path), []).append(i)
        except OSError:
            continue  # who reads it says so
    for alike in sizes.values():
        for i in alike if len(alike) > 1 else ():
            yield i, hashlib.blake2b(Path(paths[i]).read_bytes(), digest_size=16).digest()
