"""What makes a matrix a noise model and an array a set of labels; everything else is refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.errors import NoiseError

Matrix = NDArray[np.float64]

# Published matrices are rounded to three or four decimals: rows this close to 1 are divided by their sum.
ROUNDING = 1e-3
# Below this a row counts as summing to 1 already. Dividing again would move its last bit, and with it, once in a
# while, a label that is rebuilt from a manifest.
EXACT = 1e-12


def numbers(values: ArrayLike, what: str) -> Matrix:
    """The values as a float64 array of their own, or a NoiseError if they are not finite numbers."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise NoiseError(f"{what} is no array of numbers; give rows of equal length that hold numbers only.") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NoiseError(f"{what} holds {array[where]} at {where}; every entry must be a finite number.")
    return array


def square(values: ArrayLike, what: str) -> Matrix:
    """A (K, K) array of finite numbers that are not negative, K >= 2."""
    matrix = numbers(values, what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise NoiseError(f"{what} has shape {matrix.shape}; it must be square, one row and one column per class.")
    if len(matrix) < 2:
        raise NoiseError(f"{what} has one class; label noise needs at least two.")
    if (matrix < 0).any():
        a, b = np.argwhere(matrix < 0)[0]
        raise NoiseError(
            f"{what} has the negative entry {matrix[a, b]:g} in row {a}, column {b}; it must be 0 or more."
        )
    return matrix


def probabilities(values: ArrayLike, what: str) -> Matrix:
    """A (K, K) array of numbers between 0 and 1."""
    matrix = square(values, what)
    if (matrix > 1 + ROUNDING).any():
        a, b = np.argwhere(matrix > 1 + ROUNDING)[0]
        raise NoiseError(
            f"{what} has {matrix[a, b]:g} in row {a}, column {b}; probabilities lie between 0 and 1 "
            "(for counts use NoiseModel.from_confusion)."
        )
    return matrix


def normalised(matrix: Matrix, what: str, *, empty_rows: bool) -> Matrix:
    """The matrix with rows that sum to 1 (or to 0, where `empty_rows` are allowed); only rounding is mended."""
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1.0)
    bad = off > ROUNDING
    if empty_rows:
        bad &= sums != 0
    if bad.any():
        a = int(np.flatnonzero(bad)[0])
        raise NoiseError(f"row {a} of {what} sums to {sums[a]:g}; every row must sum to 1.")
    return matrix / np.where((off > EXACT) & (sums > 0), sums, 1.0)[:, None]


def structure(values: ArrayLike, what: str) -> Matrix:
    """A noise structure C: zero diagonal, each row sums to 1, or to 0 for a class that is never corrupted."""
    matrix = probabilities(values, what)
    diagonal = np.diag(matrix)
    if diagonal.any():
        a = int(np.flatnonzero(diagonal)[0])
        raise NoiseError(
            f"{what} has {diagonal[a]:g} on its diagonal (class {a}), which must be 0 in C because a corrupted label "
            "is a wrong one; for a full transition matrix F use NoiseModel.from_matrix, or leave the ratio out."
        )
    return normalised(matrix, what, empty_rows=True)


def intensity(values: ArrayLike, rows: Matrix, what: str) -> Matrix:
    """The shares P (K,) between 0 and 1 that fit the rows of C: 0 wherever a row of C is empty."""
    shares = numbers(values, what)
    if shares.shape != (len(rows),):
        raise NoiseError(f"{what} has shape {shares.shape} but C has {len(rows)} classes; give one share per class.")
    if (shares < 0).any() or (shares > 1).any():
        a = int(np.flatnonzero((shares < 0) | (shares > 1))[0])
        raise NoiseError(f"{what} is {shares[a]:g} for class {a}; a share lies between 0 and 1.")
    stuck = (shares > 0) & ~rows.any(axis=1)
    if stuck.any():
        a = int(np.flatnonzero(stuck)[0])
        raise NoiseError(
            f"{what} corrupts {shares[a]:g} of class {a}, but row {a} of C is all zero and names no class to turn it "
            "into; set that share to 0 or fill the row."
        )
    return shares


def share(ratio: Any, what: str) -> float:
    """A ratio as a float between 0 and 1."""
    if isinstance(ratio, bool) or not isinstance(ratio, int | float | np.floating | np.integer) or not 0 <= ratio <= 1:
        raise NoiseError(f"{what}: the ratio is {ratio}; give a number between 0 and 1, such as 0.4 for 40 %.")
    return float(ratio)


def labels(y: ArrayLike, classes: int, what: str) -> NDArray[np.int64]:
    """Labels (N,) as int64 in 0..K-1, at least one."""
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise NoiseError(
            f"labels have dtype {array.dtype} and shape {array.shape}; {what} needs integers of shape (N,)."
        )
    if len(array) == 0:
        raise NoiseError(f"there are no labels; {what} needs at least one.")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= classes:
        raise NoiseError(
            f"{what} has {classes} classes but a label is {low if low < 0 else high}; "
            f"labels must be 0 to {classes - 1}, so choose noise with as many classes as the data."
        )
    return array.astype(np.int64)
