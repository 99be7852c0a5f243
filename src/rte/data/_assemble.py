"""A dataset from arrays: training and perhaps test examples, their labels, the names of classes, the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from rte.data._labels import as_labels, class_values, encode, named_values
from rte.data.types import Dataset, Source, Split
from rte.errors import DataError

PARTS = ("x_train", "y_train", "x_test", "y_test", "classes", "y_true")
KEYS = {*PARTS, "x", "y", "y_train_true"} - {"y_true"}
"""What an .npz file calls them; x and y stand for x_train and y_train."""

Field = Callable[[str], str]
"""What a message calls a part."""


@dataclass(frozen=True)
class Kind:
    """A kind of example: `noun` for messages, how an array is read, and the shape that all examples share."""

    noun: str
    read: Callable[[Any, str], Source]
    shape: Callable[[Any], tuple[int, ...]]


def assemble(values: dict[str, Any], kind: Kind, *, name: str, field: Field) -> Dataset:
    """The dataset of the arrays in `values`, by `PARTS`; those that are None are not there."""
    if (values["x_test"] is None) != (values["y_test"] is None):
        there, absent = ("x_test", "y_test") if values["y_test"] is None else ("y_test", "x_test")
        raise DataError(f"{field(there)} is given without {absent}; give both or neither.")
    x = kind.read(values["x_train"], field("x_train"))
    y = as_labels(values["y_train"], field("y_train"))
    _same_length(kind, x, y, field, "x_train", "y_train")
    found = class_values(y, field("y_train"))
    named = values["classes"]
    accepted = found if named is None else named_values(named, y, field("classes"))
    names = tuple(str(value) for value in (accepted if named is None else named))
    train = Split(x, encode(y, accepted, _places(field("y_train"))))
    test = None
    if values["x_test"] is not None:
        x_test, y_test = kind.read(values["x_test"], field("x_test")), as_labels(values["y_test"], field("y_test"))
        _same_length(kind, x_test, y_test, field, "x_test", "y_test")
        if kind.shape(x_test) != kind.shape(x):
            raise DataError(
                f"{field('x_test')} holds {kind.noun} of shape {kind.shape(x_test)} but x_train of {kind.shape(x)}; "
                "make them the same."
            )
        test = Split(x_test, encode(y_test, accepted, _places(field("y_test"))))
    truth = None
    if values["y_true"] is not None:
        labels = as_labels(values["y_true"], field("y_true"))
        _same_length(kind, x, labels, field, "x_train", "y_true")
        truth = encode(labels, accepted, _places(field("y_true")))
    return Dataset(name, names, train, test, truth)


def from_stored(stored: dict[str, Any], kind: Kind, *, name: str, where: str) -> Dataset:
    """The dataset of an archive's arrays: x_train, y_train (or x, y), x_test, y_test, classes, y_train_true."""
    plain = "x_train" not in stored and "x" in stored
    names = {"y_true": "y_train_true"} | ({"x_train": "x", "y_train": "y"} if plain else {})
    for needed in (names.get("x_train", "x_train"), names.get("y_train", "y_train")):
        if needed not in stored:
            raise DataError(
                f"{where} has no array {needed} (it has: {', '.join(sorted(stored)) or 'nothing we know'}); "
                "store x_train and y_train, or x and y."
            )
    values = {part: stored.get(names.get(part, part)) for part in PARTS}
    return assemble(values, kind, name=name, field=lambda part: f"{where}: {names.get(part, part)}")


def _places(field: str) -> Callable[[int], str]:
    return lambda i: f"{field}[{i}]"


def _same_length(kind: Kind, x: Source, y: NDArray[Any], field: Field, x_part: str, y_part: str) -> None:
    if len(x) != len(y):
        raise DataError(
            f"{field(x_part)} has {len(x)} {kind.noun} but {field(y_part)} has {len(y)} labels; "
            f"give one label per {kind.noun.removesuffix('s')}."
        )
