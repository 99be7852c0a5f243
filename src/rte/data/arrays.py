"""Images and labels as NumPy arrays, from Python or from an .npz file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data._assemble import KEYS, PARTS, Kind, assemble, from_stored
from rte.data._own import Own, finished
from rte.data._places import find
from rte.data.types import ArrayImages, Dataset, Pixels
from rte.errors import DataError
from rte.files import DAMAGED
from rte.settings import setting

SUMMARY = "your own images in an .npz file: x_train, y_train and, if there are any, x_test, y_test, classes"
BLOCK = 1024


class Config(Own):
    """Which .npz file."""

    path: str = setting(..., "the .npz file, from here or from the data folder")


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The arrays x_train, y_train (or x, y) of an .npz file, and x_test, y_test, classes, y_train_true if present."""
    path = find(cfg.path, data_dir, folder=False)
    data = from_stored(read_npz(path), IMAGES, name=path.stem, where=str(path))
    return finished(data, cfg, path.parent, data_dir)


def from_arrays(
    x_train: Any,
    y_train: Any,
    x_test: Any = None,
    y_test: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    name: str = "arrays",
    y_true: Any = None,
) -> Dataset:
    """A dataset of images (N, H, W) or (N, H, W, C) and labels (N,).

    Images are uint8, or floats in 0..1; C is 1 or 3. Labels are integers or strings; the classes are the sorted labels
    of `y_train`, unless `classes` names them in order: labels are then those names, or their positions 0..K-1.
    """
    values = dict(zip(PARTS, (x_train, y_train, x_test, y_test, classes, y_true), strict=True))
    return assemble(values, IMAGES, name=name, field=lambda part: part)


def as_images(x: Any, field: str) -> ArrayImages:
    """Images without labels, as arrays are given: see `from_arrays`."""
    return ArrayImages(as_pixels(x, field))


def read_images(path: Path) -> ArrayImages:
    """The images of an .npz file that are to be classified: its array x, or else x_test."""
    file = find(str(path), None, folder=False)
    stored = read_npz(file)
    for name in ("x", "x_test"):
        if name in stored:
            return as_images(stored[name], f"{file}: {name}")
    raise DataError(f"{file} has no array x (it has: {', '.join(sorted(stored)) or 'nothing we know'}); store one.")


def as_pixels(x: Any, field: str) -> Pixels:
    """Images as one uint8 array (N, H, W, C): uint8 is taken as it is, floats in 0..1 become round(255 x)."""
    array = np.asarray(x)
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[3] not in (1, 3):
        hint = "; channels come last: x.transpose(0, 2, 3, 1)" if array.ndim == 4 and array.shape[1] in (1, 3) else ""
        raise DataError(f"{field} has shape {np.shape(x)}; give images (N, H, W), (N, H, W, 1) or (N, H, W, 3){hint}.")
    if len(array) == 0:
        raise DataError(f"there is nothing in {field}; give at least one image.")
    if 0 in array.shape:
        raise DataError(f"{field} has shape {np.shape(x)}; images must be at least one pixel high and wide.")
    if array.dtype.kind == "f":
        return _from_floats(array, field)
    if array.dtype != np.uint8:
        raise DataError(f"{field} has dtype {array.dtype}; give uint8 in 0..255, or floats in 0..1.")
    return np.ascontiguousarray(array)


def _from_floats(array: NDArray[Any], field: str) -> Pixels:
    """round(255 x), block by block so that no second array of floats is held."""
    pixels = np.empty(array.shape, dtype=np.uint8)
    for start in range(0, len(array), BLOCK):
        block = array[start : start + BLOCK].astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(block).reshape(len(block), -1).all(axis=1))
        if len(wrong):
            raise DataError(f"image {start + wrong[0]} of {field} holds NaN or infinite values; remove or repair it.")
        outside = np.flatnonzero(((block < 0) | (block > 1)).reshape(len(block), -1).any(axis=1))
        if len(outside):
            one = block[outside[0]]
            raise DataError(
                f"image {start + outside[0]} of {field} has values from {one.min():g} to {one.max():g}; "
                "floats must lie in 0..1, so rescale them or give uint8 in 0..255."
            )
        pixels[start : start + BLOCK] = np.rint(block * 255)
    return pixels


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file that we know by name; stored Python objects are never loaded."""
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path} ({size:,} bytes) is no .npz archive or was cut short; copy it again or write it with np.savez."
        )
    name = ""
    try:
        with np.load(path, allow_pickle=False) as archive:
            stored = {}
            for name in sorted(KEYS.intersection(archive.files)):
                stored[name] = archive[name]
            return stored
    except DAMAGED as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise DataError(f"{path}: {name} holds Python objects; store it as numbers or as strings.") from error
        raise DataError(
            f"{path} ({size:,} bytes) is damaged at {name or 'its start'} ({error}); copy it again."
        ) from error


IMAGES = Kind("images", as_images, lambda source: (*source.size, source.channels))
