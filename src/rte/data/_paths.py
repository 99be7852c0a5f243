"""Many paths in little memory, and the images below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from rte.errors import DataError

SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm",
)  # fmt: skip


class Paths(Sequence[str]):
    """Paths as bytes, one after another, and where each ends: of a million files, half the memory of strings."""

    def __init__(self, paths: Iterable[Path | str]) -> None:
        ends, text = [], bytearray()
        for path in paths:
            text += os.fsencode(path)
            ends.append(len(text))
        self._text, self._ends = bytes(text), np.array([0, *ends], np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        i = range(len(self))[k]  # an IndexError ends an iteration
        return os.fsdecode(self._text[self._ends[i] : self._ends[i + 1]])


def image_files(path: Path) -> list[str]:
    """One image file, or all images anywhere below a folder, sorted by path."""
    if not path.is_dir():
        return [os.fspath(path)]
    found, skipped = walk(path)
    if not found:
        ignored = f" ({skipped} other files were ignored)" if skipped else ""
        raise DataError(f"{path} holds no image{ignored}; give a folder with images ({' '.join(SUFFIXES)}).")
    return found


def walk(folder: Path) -> tuple[list[str], int]:
    """Image files anywhere below a folder, sorted, and how many other files were passed over."""
    found, skipped = [], 0
    seen: set[tuple[int, int]] = set()  # folders, since a link may lead back to one above it

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename} cannot be listed ({error.strerror}); check its permissions.")

    for here, below, files in os.walk(folder, onerror=refuse, followlinks=True):
        status = os.stat(here)
        if (status.st_dev, status.st_ino) in seen:
            below[:] = []
            continue
        seen.add((status.st_dev, status.st_ino))
        below[:] = sorted(name for name in below if not name.startswith("."))
        shown = [name for name in files if not name.startswith(".")]
        images = [name for name in shown if name.lower().endswith(SUFFIXES)]
        found += [os.path.join(here, name) for name in images]
        skipped += len(shown) - len(images)
    return sorted(found, key=lambda path: path.replace(os.sep, "\0")), skipped  # folder by folder
