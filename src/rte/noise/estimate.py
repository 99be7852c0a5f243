"""Noise shaped like a classifier's mistakes: from counts of confusions to a file that `matrix:FILE:RATIO` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from rte.errors import NoiseError
from rte.files import refuse_output, write_atomic
from rte.noise import checks
from rte.noise.checks import Matrix
from rte.noise.config import MATRIX_SUFFIXES
from rte.noise.files import read
from rte.noise.matrix import NoiseModel

COUNTS = ("counts", "confusion")
WRITTEN = (".csv", ".json", ".npz")


def structure(counts: ArrayLike) -> Matrix:
    """C (K, K) of counts[a, b], how often class a was taken for b: zero diagonal, rows divided by their sums.

    The row of a class that was never confused stays zero, and the class is then never corrupted.
    """
    return NoiseModel.from_confusion(counts, 1.0).C


def read_counts(path: str | PathLike[str]) -> Matrix:
    """The confusion matrix (K, K) of a .csv, .txt, .npy, .npz or .json file; named `counts` where there are several."""
    entries = read(path, MATRIX_SUFFIXES)
    named = [name for name in COUNTS if name in entries]
    if not named and len(entries) != 1:
        raise NoiseError(f"{path} holds {', '.join(sorted(entries)) or 'nothing'}; name the confusion matrix counts.")
    return checks.square(entries[named[0]] if named else next(iter(entries.values())), str(path))


def refuse_matrix(path: Path, *, overwrite: bool) -> None:
    """Refuse, before the work, a file that C cannot be written to."""
    if path.suffix.lower() not in WRITTEN:
        raise NoiseError(f"cannot write a matrix to {path}; choose a name that ends in {', '.join(WRITTEN)}.")
    refuse_output(path, "--out", overwrite=overwrite)


def write_structure(path: Path, counts: ArrayLike, classes: Sequence[str] | None = None) -> Matrix:
    """Write C and, but for .csv, the counts it comes from and the names of the classes; returns C."""
    refuse_matrix(path, overwrite=True)
    C, given = structure(counts), np.asarray(counts)
    entries: dict[str, Any] = {"C": C, "counts": given} | ({} if classes is None else {"classes": np.array(classes)})

    def write(file: IO[bytes]) -> None:
        match path.suffix.lower():
            case ".npz":
                np.savez_compressed(file, **entries)
            case ".json":
                file.write(json.dumps({name: part.tolist() for name, part in entries.items()}, indent=1).encode())
            case _:
                file.write("\n".join(",".join(map(repr, row)) for row in C.tolist()).encode() + b"\n")

    write_atomic(path, write)
    return C


def in_words(counts: ArrayLike, classes: Sequence[str] | None = None) -> list[str]:
    """What a user should know of the counts: how many mistakes there are, and who never makes any."""
    given = np.asarray(counts)
    wrong, total = given.sum() - given.trace(), given.sum()
    never = np.flatnonzero(~structure(given).any(axis=1)).tolist()
    names = ", ".join(str(k) if classes is None else classes[k] for k in never)
    lines = [f"{wrong:g} of {total:g} were confused ({100 * wrong / total:.2f} %)."]
    return lines + ([f"Never confused, and so never corrupted: {names}."] if names else [])
