"""Images and labels as NumPy arrays, from Python or from an .npz file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data._labels import as_labels, class_values, encode, named_values
from rte.data._places import find
from rte.data.statistics import with_test_share
from rte.data.types import ArrayImages, Dataset, Pixels, Split
from rte.errors import DataError
from rte.settings import Settings, setting

SUMMARY = "your own images in an .npz file: x_train, y_train and, if there are any, x_test, y_test, classes"
PARTS = ("x_train", "y_train", "x_test", "y_test", "classes", "y_true")
KEYS = {*PARTS, "x", "y", "y_train_true"} - {"y_true"}
BLOCK = 1024

Field = Callable[[str], str]


class Config(Settings):
    """Which .npz file."""

    path: str = setting(..., "the .npz file, from here or from the data folder")
    test_share: float = setting(0.0, "share of the training images set apart for testing", ge=0.0, lt=1.0)


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The arrays x_train, y_train (or x, y) of an .npz file, and x_test, y_test, classes, y_train_true if present."""
    path = find(cfg.path, data_dir, folder=False)
    stored = read_npz(path)
    plain = "x_train" not in stored and "x" in stored
    names = {"y_true": "y_train_true"} | ({"x_train": "x", "y_train": "y"} if plain else {})
    for needed in (names.get("x_train", "x_train"), names.get("y_train", "y_train")):
        if needed not in stored:
            raise DataError(
                f"{path} has no array {needed} (it has: {', '.join(sorted(stored)) or 'nothing we know'}); "
                "store x_train and y_train, or x and y."
            )
    values = {part: stored.get(names.get(part, part)) for part in PARTS}
    data = _dataset(values, name=path.stem, field=lambda part: f"{path}: {names.get(part, part)}")
    return with_test_share(data, cfg.test_share)


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
    return _dataset(values, name=name, field=lambda part: part)


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


def _dataset(values: dict[str, Any], name: str, field: Field) -> Dataset:
    """The dataset of the arrays in `values`; `field` is what a message calls each of them."""
    if (values["x_test"] is None) != (values["y_test"] is None):
        there, absent = ("x_test", "y_test") if values["y_test"] is None else ("y_test", "x_test")
        raise DataError(f"{field(there)} is given without {absent}; give both or neither.")
    pixels = as_pixels(values["x_train"], field("x_train"))
    y = as_labels(values["y_train"], field("y_train"))
    _same_length(pixels, y, field, "x_train", "y_train")
    found = class_values(y, field("y_train"))
    named = values["classes"]
    accepted = found if named is None else named_values(named, y, field("classes"))
    names = tuple(str(value) for value in (accepted if named is None else named))
    train = Split(ArrayImages(pixels), encode(y, accepted, _places(field("y_train"))))
    test = None
    if values["x_test"] is not None:
        test_pixels, y_test = as_pixels(values["x_test"], field("x_test")), as_labels(values["y_test"], field("y_test"))
        _same_length(test_pixels, y_test, field, "x_test", "y_test")
        if test_pixels.shape[1:] != pixels.shape[1:]:
            raise DataError(
                f"{field('x_test')} holds images of shape {test_pixels.shape[1:]} but x_train of {pixels.shape[1:]}; "
                "make them the same."
            )
        test = Split(ArrayImages(test_pixels), encode(y_test, accepted, _places(field("y_test"))))
    truth = None
    if values["y_true"] is not None:
        labels = as_labels(values["y_true"], field("y_true"))
        _same_length(pixels, labels, field, "x_train", "y_true")
        truth = encode(labels, accepted, _places(field("y_true")))
    return Dataset(name, names, train, test, truth)


def _places(field: str) -> Callable[[int], str]:
    return lambda i: f"{field}[{i}]"


def _same_length(pixels: Pixels, y: NDArray[Any], field: Field, x_part: str, y_part: str) -> None:
    if len(pixels) != len(y):
        raise DataError(
            f"{field(x_part)} has {len(pixels)} images but {field(y_part)} has {len(y)} labels; "
            "give one label per image."
        )


def as_pixels(x: Any, field: str) -> Pixels:
    """Images as one uint8 array (N, H, W, C): uint8 is taken as it is, floats in 0..1 become round(255 x)."""
    array = np.asarray(x)
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[3] not in (1, 3):
        hint = "; channels come last: x.transpose(0, 2, 3, 1)" if array.ndim == 4 and array.shape[1] in (1, 3) else ""
        raise DataError(f"{field} has shape {np.shape(x)}; give images (N, H, W), (N, H, W, 1) or (N, H, W, 3){hint}.")
    if len(array) == 0:
        raise DataError(f"{field} holds no images; give at least one per class.")
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
    except (OSError, EOFError, KeyError, ValueError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise DataError(f"{path}: {name} holds Python objects; store it as numbers or as strings.") from error
        raise DataError(
            f"{path} ({size:,} bytes) is damaged at {name or 'its start'} ({error}); copy it again."
        ) from error
