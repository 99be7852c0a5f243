"""The shapes that all metrics ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.errors import DataError

Labels = NDArray[np.int64]


def rows_and_labels(rows: ArrayLike, y: ArrayLike, what: str) -> tuple[NDArray[np.floating[Any]], Labels]:
    """One row of K numbers and one label in 0..K-1 per example: (N, K) and (N,), N >= 1."""
    table, labels = np.asarray(rows), np.asarray(y)
    if table.ndim != 2 or table.shape[1] < 1 or table.dtype.kind not in "fiu":
        raise DataError(f"{what} have dtype {table.dtype} and shape {table.shape}; give numbers of shape (N, K).")
    if labels.shape != (len(table),) or labels.dtype.kind not in "iu":
        raise DataError(
            f"labels have dtype {labels.dtype} and shape {labels.shape} for {len(table)} {what}; give integers (N,)."
        )
    if not len(labels):
        raise DataError("there are no examples to measure; give at least one.")
    if labels.min() < 0 or labels.max() >= table.shape[1]:
        i = int(np.flatnonzero((labels < 0) | (labels >= table.shape[1]))[0])
        raise DataError(f"label {labels[i]} of example {i} is none of the {table.shape[1]} classes of the {what}.")
    return table if table.dtype.kind == "f" else table.astype(np.float64), labels.astype(np.int64)


def paired(first: ArrayLike, y: ArrayLike, y_true: ArrayLike, what: str) -> tuple[NDArray[Any], Labels, Labels]:
    """Three arrays (N,): one value, one given label and one true label per example."""
    arrays = np.asarray(first), np.asarray(y), np.asarray(y_true)
    if any(array.ndim != 1 or len(array) != len(arrays[0]) for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise DataError(f"{what}, given labels and true labels have shapes {shapes}; give one of each per example.")
    return arrays
