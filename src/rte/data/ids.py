"""What to call each example in a file that others read: its file's name from the data folder on, or its number."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data.files import FileImages
from rte.data.rows import TableRows
from rte.data.types import ArrayVectors, Embedded, Source, Subset

RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "＝", "＋", "－", "＠")
"""A cell that begins so may be taken for a formula by a spreadsheet, or has been made safe already."""


def whole(source: Source) -> tuple[Source, NDArray[np.int64]]:
    """The source that lies below all choices of rows, and which of its rows these are."""
    rows = np.arange(len(source), dtype=np.int64)
    below: Source = source
    while isinstance(below, Subset | Embedded):
        rows = below.rows[rows] if isinstance(below, Subset) else rows
        below = below.images
    if isinstance(below, ArrayVectors) and below.rows is not None:
        rows = below.rows[rows]
        below = ArrayVectors(below.values)
    if isinstance(below, TableRows) and below.rows is not None:
        rows = below.rows[rows]
        below = replace(below, rows=None)
    return below, rows


def ids(source: Source, root: Path | None = None) -> Callable[[int], str]:
    """The name of example i: of a file, its path below `root`, with slashes; of anything else, its number."""
    below, rows = whole(source)
    if not isinstance(below, FileImages):
        return lambda i: str(int(rows[i]))
    files, start = below.paths, "" if root is None else os.path.join(os.path.abspath(root), "")

    def name(i: int) -> str:
        path = os.path.abspath(files[int(rows[i])]) if start else files[int(rows[i])]
        return path.removeprefix(start).replace(os.sep, "/")

    return name


def cell(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula: with an apostrophe before it, where it might."""
    return "'" + text if text.lstrip(" ").startswith(RISKY) and not _number(text) else text


def uncell(text: str) -> str:
    """The text that `cell` was given."""
    return text.removeprefix("'")


def _number(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()
