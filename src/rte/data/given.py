"""Examples and labels as users of scikit-learn give them: arrays, lists, columns of a table, paths of files.

Labels keep their type: what NumPy would change without a word, or make a class of, is refused.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array

from rte.data.arrays import as_pixels
from rte.data.files import FileImages
from rte.data.rows import Column, TableRows, frame_rows, is_frame, is_mixed
from rte.data.types import ArrayImages, ArrayVectors, Images
from rte.data.vectors import DIMENSIONS
from rte.errors import DataError


def as_examples(
    X: Any, channels: int | None = None, columns: Sequence[Column] | None = None
) -> Images | ArrayVectors | TableRows:
    """Images where an array has three or four dimensions, or where files are named by their paths; else vectors.

    Vectors are checked as scikit-learn does, with its sentences. A DataFrame with more than numbers in it is a table;
    `columns` are those of the table that a model was trained on.
    """
    if columns is not None and not is_frame(X):
        raise DataError(f"X is a {type(X).__name__}, but fit was given a DataFrame; give one with the same columns.")
    if is_frame(X) and (columns is not None or is_mixed(X)):
        return frame_rows(X, columns)
    shape = np.shape(X) if hasattr(X, "shape") else np.shape(X[0]) if isinstance(X, Sequence) and len(X) else ()
    if isinstance(X, str | os.PathLike) or len(shape) + (not hasattr(X, "shape")) > DIMENSIONS or _are_paths(X):
        return as_images(X, channels)
    return ArrayVectors(check_array(X, dtype=(np.float64, np.float32), estimator="RobustClassifier", input_name="X"))


def _are_paths(X: Any) -> bool:
    several = (isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1) and len(X) > 0
    return several and all(isinstance(path, str | os.PathLike) for path in X)


def as_images(X: Any, channels: int | None = None) -> Images:
    """Arrays as they are, or the files that paths name."""
    if sparse.issparse(X):
        raise DataError("the images are a sparse matrix; give an array (N, H, W) or (N, H, W, C).")
    if isinstance(X, str | os.PathLike):
        raise DataError(f"the images are {str(X)!r}, one path; give a list of the paths of image files, or an array.")
    try:
        array = np.asarray(X)
    except ValueError:
        raise DataError("the images are not all of one shape; resize them, or give the paths of their files.") from None
    if array.ndim == 1 and len(array) and all(isinstance(path, str | os.PathLike) for path in array):
        return FileImages.open([Path(path) for path in array], channels=channels)
    return ArrayImages(as_pixels(array, "the images"))


def as_labels(y: Any) -> NDArray[Any]:
    """The labels (N,), all of one kind; those that are missing or mixed are refused, since NumPy would change them."""
    if y is None:
        raise DataError("RobustClassifier requires y to be passed, but the target y is None; give one label for each.")
    if sparse.issparse(y) or isinstance(y, str | bytes | Mapping):
        raise DataError(f"the labels are a {type(y).__name__}; give a list or array of one label per image.")
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise DataError("some labels are masked; leave those images out.")
    array = _objects(list(y)) if isinstance(y, Sequence) else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
        array = array[:, 0]
    if array.ndim != 1:
        hint = "; for one-hot rows, y.argmax(1)" if array.ndim == 2 else ""
        raise DataError(f"the labels have shape {array.shape}; give one label per image, shape (N,){hint}.")
    return _of_one_kind(array) if array.dtype == object else _whole(array)


def _objects(values: list[Any]) -> NDArray[Any]:
    """A list as an array of just these objects; a list of rows as rows."""
    if values and all(isinstance(value, list | np.ndarray) for value in values):
        try:
            rows = np.asarray(values)
        except ValueError:
            raise DataError("the labels are lists that differ in length; give one label per image.") from None
        if rows.ndim > 1:
            return rows
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _of_one_kind(array: NDArray[Any]) -> NDArray[Any]:
    first: dict[str, int] = {}
    for i, value in enumerate(array):
        if value is None or type(value).__name__ in ("NAType", "NaTType") or (_is_number(value) and value != value):
            raise DataError(f"label {i} is missing ({value!r}); leave its image out, or give it a label.")
        first.setdefault(_kind(value), i)
    if len(first) > 1:
        (one, i), (other, j) = list(first.items())[:2]
        raise DataError(
            f"the labels are of different kinds: label {i} is {array[i]!r} ({one}), label {j} is {array[j]!r} "
            f"({other}); make them all strings, or all numbers."
        )
    return _whole(np.array(array.tolist())) if first.keys() <= {"string", "number", "truth value"} else array


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, Enum)


def _kind(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if _is_number(value):
        return "number"
    return "string" if isinstance(value, str) and not isinstance(value, Enum) else type(value).__name__


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    """The same labels, if none is NaN or a measurement."""
    if array.dtype.kind in "fcmM":
        wrong = np.flatnonzero(~np.isfinite(array) if array.dtype.kind in "fc" else np.isnat(array))
        if len(wrong):
            raise DataError(f"label {wrong[0]} is {array[wrong[0]]}; leave its image out, or give it a label.")
    if array.dtype.kind in "fc" and len(wrong := np.flatnonzero(array != np.rint(array))):
        raise DataError(
            f"label {wrong[0]} is {array[wrong[0]]}, a measurement (continuous); labels are classes, so give whole "
            "numbers."
        )
    return array


def encode(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct labels, sorted or else in order of appearance, and each label's place among them."""
    if labels.dtype != object:
        classes, codes = np.unique(labels, return_inverse=True)
    else:
        try:
            distinct = list(dict.fromkeys(labels))
        except TypeError as error:
            raise DataError(f"the labels cannot be told apart ({error}); give numbers or strings.") from None
        try:
            distinct.sort()
        except TypeError:
            distinct = list(dict.fromkeys(labels))
        place = {value: k for k, value in enumerate(distinct)}
        classes, codes = np.empty(len(distinct), dtype=object), np.array([place[value] for value in labels])
        classes[:] = distinct
    if len(classes) < 2:
        raise DataError(f"the labels have {len(classes)} class; a classifier needs examples of at least two classes.")
    return classes, codes.astype(np.int64)
