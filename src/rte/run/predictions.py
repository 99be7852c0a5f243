"""Predictions as a stream, from files, folders, patterns and lists of paths, made while others are read.

A file that cannot be read is remembered and named at the end; the others are predicted.
"""

from __future__ import annotations

import csv
import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
from numpy.typing import NDArray

from rte.data.files import MEGAPIXELS, decode, image_files
from rte.data.types import Pixels
from rte.errors import DataError
from rte.files import expanded
from rte.run.features import batch_of
from rte.run.inputs import FeatureSpec, ImageSpec
from rte.run.predictor import Predictor

TABLES = (".csv", ".tsv", ".txt")
COLUMNS = ("path", "image", "file", "filename")
"""What the column of paths may be called; else it is the first."""
MOST = 64
"""Images that are decoded for a batch at most: photographs of any size must fit into memory."""
AHEAD = 3
"""Batches that are decoded before the network asks for them."""


@dataclass(frozen=True)
class Block:
    """Some predicted examples: what they are called, and class probabilities (B, K)."""

    names: Sequence[str]
    probabilities: NDArray[np.float64]


@dataclass
class Stream:
    """Predictions for the images at `paths`; after the last block, `unread` says which could not be read, and why."""

    predictor: Predictor
    paths: Iterable[str]
    threads: int = field(default_factory=lambda: min(8, os.cpu_count() or 1))
    unread: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Block]:
        predictor, spec, data = self.predictor, self.predictor.spec, self.predictor.config.data
        assert isinstance(spec, ImageSpec | FeatureSpec)
        shorter, most = getattr(data, "shorter", None), getattr(data, "megapixels", MEGAPIXELS)
        viewer, paths = predictor.viewer, iter(self.paths)
        size = min(MOST, batch_of(viewer))

        def read(path: str) -> Pixels | str:
            try:
                return decode(path, spec.channels, shorter, most)
            except DataError as error:
                return str(error)

        def decoded(names: list[str]) -> tuple[list[str], torch.Tensor | None]:
            found = [(name, read(name)) for name in names]
            self.unread += [pixels for _, pixels in found if isinstance(pixels, str)]
            good = [(name, pixels) for name, pixels in found if not isinstance(pixels, str)]
            if not good:
                return [], None
            return [name for name, _ in good], viewer.tensor(torch.from_numpy(viewer.plain([p for _, p in good])))

        with ThreadPoolExecutor(self.threads, thread_name_prefix="rte-read") as pool:
            batches = iter(lambda: list(islice(paths, size)), [])
            coming = deque(pool.submit(decoded, names) for names in islice(batches, AHEAD * self.threads))
            while coming:
                names, x = coming.popleft().result()
                coming.extend(pool.submit(decoded, more) for more in islice(batches, 1))
                if x is not None:
                    yield Block(names, predictor.predicted(x))


def predictions(predictor: Predictor, given: Sequence[str], stdin: TextIO) -> Stream | Iterator[Block]:
    """Of all that was given, in its order; vectors, tables and archives are read whole."""
    images = isinstance(predictor.spec, ImageSpec | FeatureSpec)
    if images and not any(text.endswith(".npz") for text in given):
        return Stream(predictor, list(gather(given, stdin)))
    return _whole(predictor, given)


def _whole(predictor: Predictor, given: Sequence[str]) -> Iterator[Block]:
    for text in given:
        source = predictor.open(text)
        yield Block([source.label(i) for i in range(len(source))], predictor.probabilities(source))


def gather(given: Sequence[str], stdin: TextIO) -> Iterator[str]:
    """Paths of image files: those given, those below folders, those that patterns match, those that lists name."""
    for text in given:
        if text == "-":
            yield from (line for raw in stdin if (line := raw.rstrip("\n")))
            continue
        path = expanded(text)
        if path.is_dir():
            yield from image_files(path)
        elif path.suffix.lower() in TABLES and path.is_file():
            yield from listed(path)
        elif not os.path.lexists(path) and glob.has_magic(text):
            found = sorted(glob.glob(str(path), recursive=True))
            if not found:
                raise DataError(f"{text} matches no file; correct the pattern, or give a folder.")
            yield from gather([os.path.join(".", name) if name == "-" else name for name in found], stdin)
        else:
            yield os.fspath(path)


def listed(file: Path) -> Iterator[str]:
    """The paths in a list, one a line of a .txt file, or the column path of a table; relative ones start beside it."""
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as text:
            if file.suffix.lower() == ".txt":
                names = [line.rstrip("\r\n") for line in text]
            else:
                header = text.readline()
                separator = max(",;\t", key=header.count)
                columns = [name.strip().lower() for name in next(csv.reader([header], delimiter=separator), [])]
                at = next((columns.index(name) for name in COLUMNS if name in columns), None)
                if at is None:
                    raise DataError(
                        f"{file} has no column path in its first line (it has: {', '.join(columns) or 'nothing'}); "
                        "name the column of the image files path."
                    )
                names = [row[at] for row in csv.reader(text, delimiter=separator) if len(row) > at]
    except (OSError, csv.Error) as error:
        raise DataError(f"{file} cannot be read ({error}); give a list of paths.") from None
    yield from (os.path.join(file.parent, os.path.expanduser(name)) for name in names if name.strip())
