"""Labels of any kind, integers or strings, as classes 0..K-1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Labels
from rte.errors import DataError

Where = Callable[[int], str]
"""How a message calls label i of a field: `y_train[7]`, or a line of a table."""


def as_labels(y: Any, field: str) -> NDArray[Any]:
    """`y` as a one-dimensional array (N,) of integers or of str; anything else is refused by the name of its field."""
    array = np.asarray(y)
    if array.ndim != 1:
        raise DataError(f"{field} has shape {array.shape}; give one label per image, shape (N,).")
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind in "OT":
        kinds = {_kind(value) for value in array}
        if kinds == {"string"}:
            return array.astype(str)
        if kinds == {"integer"}:
            return array.astype(np.int64)
    if array.dtype.kind in "iuU" or len(array) == 0:
        return array
    raise DataError(f"{field} has dtype {array.dtype}; labels must be all integers or all strings.")


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "string"
    return "integer" if isinstance(value, int | np.integer) else "other"


def class_values(y: NDArray[Any], field: str) -> NDArray[Any]:
    """The distinct labels of `y`, sorted: strings as text, integers (and strings that all are integers) by value."""
    values = np.unique(y)
    if values.dtype.kind == "U":
        values = np.array(sorted_by_value(map(str, values)))
    if len(values) == 1:
        raise DataError(
            f"{field} names a single class ({values[0]}); a classifier needs images of at least two classes."
        )
    return values


def sorted_by_value(names: Iterable[str]) -> list[str]:
    """Names of classes as text, or by value if all are integers."""
    known = sorted(names)
    return sorted(known, key=int) if all(map(_is_integer, known)) else known


def _is_integer(text: str) -> bool:
    """Whether text is an integer written the one usual way, so that no two classes share a value ("7" and "07")."""
    return text.isascii() and text.removeprefix("-").isdigit() and str(int(text)) == text


def named_values(classes: Sequence[Any], y: NDArray[Any], field: str) -> NDArray[Any]:
    """What labels stand for the classes 0..K-1 that the user named: their names, or else the numbers 0..K-1."""
    named = as_labels(classes, field)
    if len(np.unique(named)) != len(named):
        raise DataError(f"{field} names a class twice; give every class one name.")
    if len(named) < 2:
        raise DataError(f"{field} names {len(named)} class; a classifier needs at least two classes.")
    same_kind = (named.dtype.kind == "U") == (y.dtype.kind == "U")
    if not same_kind and y.dtype.kind == "U":
        raise DataError(f"{field} holds integers but the labels are strings; name the classes as the labels do.")
    return named if same_kind else np.arange(len(named))


def encode(y: NDArray[Any], values: NDArray[Any], where: Where) -> Labels:
    """Labels (N,) as positions in `values` (K,): int64 in 0..K-1; a label that is no class is refused by its place."""
    if len(y) and (y.dtype.kind == "U") != (values.dtype.kind == "U"):
        kinds = ("a string", "integers") if y.dtype.kind == "U" else ("an integer", "strings")
        raise DataError(f"{where(0)} is {kinds[0]} but the classes are {kinds[1]}; use one kind of label throughout.")
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    place = np.minimum(np.searchsorted(ranked, y), len(values) - 1)
    strange = np.flatnonzero(ranked[place] != y)
    if len(strange):
        i = int(strange[0])
        raise DataError(
            f"{where(i)} is {y[i]}, which is none of the {len(values)} classes ({_listed(values)}); "
            "correct the label, or name every class there is."
        )
    return order[place].astype(np.int64)


def _listed(values: NDArray[Any]) -> str:
    names = [str(value) for value in values]
    return ", ".join(names) if len(names) <= 8 else ", ".join([*names[:6], "…", names[-1]])
