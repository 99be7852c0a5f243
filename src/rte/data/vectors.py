"""Vectors and labels: embeddings of anything, from an .npz file or from a .npy file that is read as it is needed."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rte.data._assemble import PARTS, Kind, assemble, from_stored
from rte.data._own import Own, finished, named_by, with_test_share
from rte.data._places import find
from rte.data.arrays import read_npz
from rte.data.types import ArrayVectors, Dataset
from rte.errors import DataError
from rte.files import DAMAGED
from rte.settings import setting

KIND = "vectors"
DIMENSIONS = 2
"""Of an array of vectors."""
SUMMARY = "your own vectors (N, D), such as embeddings: an .npz file, or x.npy with its labels in y.npy"


class Config(Own):
    """Which file."""

    path: str = setting(..., "the .npz file, or the .npy file of the vectors, from here or from the data folder")
    labels: str | None = setting(None, "the .npy file of the labels of x.npy; or a table of ids and labels")


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The vectors of a file. Those of a .npy file stay on the disk until they are needed."""
    path = find(cfg.path, data_dir, folder=False)
    if path.suffix != ".npy":
        return finished(
            from_stored(read_npz(path), VECTORS, name=path.stem, where=str(path)), cfg, path.parent, data_dir
        )
    if cfg.labels is None:
        raise DataError(f"{path} holds no labels; name their file with --labels y.npy.")
    labels, x = find(cfg.labels, data_dir, folder=False), _mapped(path)
    if labels.suffix == ".npy":
        parts = dict.fromkeys(PARTS) | {"x_train": x, "y_train": _array(labels)}
        data = assemble(parts, VECTORS, name=path.stem, field=lambda part: str(labels if part[0] == "y" else path))
    else:
        data = named_by(as_vectors(x, str(path)), labels, path.stem, cfg)
    return with_test_share(data, cfg.test_share, cfg.test_seed)


def from_vectors(
    x_train: Any, y_train: Any, *, classes: Sequence[Any] | None = None, name: str = "vectors", y_true: Any = None
) -> Dataset:
    """A dataset of vectors (N, D) and labels (N,), as `arrays.from_arrays` makes one of images."""
    given = {"x_train": x_train, "y_train": y_train, "classes": classes, "y_true": y_true}
    return assemble(dict.fromkeys(PARTS) | given, VECTORS, name=name, field=lambda part: part)


def as_vectors(x: Any, field: str) -> ArrayVectors:
    """Vectors as they are given: floats, or whole numbers, (N, D)."""
    array = x if isinstance(x, np.ndarray) else np.asarray(x)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise DataError(f"{field} has dtype {array.dtype} and shape {array.shape}; give numbers of shape (N, D).")
    return ArrayVectors(array if array.dtype.kind == "f" else array.astype(np.float32))


def read_vectors(path: Path) -> ArrayVectors:
    """The vectors of a file that are to be classified: a .npy file, or an .npz file's array x, or else x_test."""
    file = find(str(path), None, folder=False)
    if file.suffix == ".npy":
        return as_vectors(_mapped(file), str(file))
    stored = read_npz(file)
    for name in ("x", "x_test"):
        if name in stored:
            return as_vectors(stored[name], f"{file}: {name}")
    raise DataError(f"{file} has no array x (it has: {', '.join(sorted(stored)) or 'nothing we know'}); store one.")


def holds_vectors(path: Path) -> bool:
    """Whether a file's examples are vectors, by the header of its array; False also where it cannot be read."""
    if path.suffix == ".npy":
        return True
    try:
        with zipfile.ZipFile(path.expanduser()) as archive:
            name = next(f"{name}.npy" for name in ("x_train", "x") if f"{name}.npy" in archive.namelist())
            with archive.open(name) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, _ = read(file)
    except DAMAGED:
        return False
    return len(shape) == DIMENSIONS


def _mapped(path: Path) -> Any:
    return _array(path, mmap_mode="r")


def _array(path: Path, **how: Any) -> Any:
    try:
        return np.load(path, allow_pickle=False, **how)
    except DAMAGED as error:
        raise DataError(f"{path} cannot be read as a .npy file ({error}); write it with np.save.") from None


VECTORS = Kind("vectors", as_vectors, lambda source: (source.dim,))
