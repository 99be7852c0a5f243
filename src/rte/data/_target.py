"""What a table of columns or of texts is labelled with, and which of its rows are trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.data._columns import Columns
from rte.data._labels import as_labels, class_values, encode
from rte.data._own import group_numbers
from rte.data._roles import LABEL, SPLIT, TRAIN, TRUE, Roles, named, split_of
from rte.data._useless import leave_out
from rte.data.rows import is_number
from rte.data.types import Dataset, Labels, Source, Split
from rte.errors import DataError

FEW = 10
"""A last column of numbers is taken for the target, where none is named, if it has at most so many different ones."""


@dataclass(frozen=True)
class Target:
    """The rows of a table that are used, and their labels; `roles` says which column is what."""

    columns: Columns
    roles: dict[str, str]
    rows: NDArray[np.int64]
    split: NDArray[np.str_]
    guessed: bool

    @property
    def rest(self) -> list[str]:
        """The columns that are none of these."""
        return [name for name in self.columns.names if name in self.columns.values and name not in self.roles.values()]

    @property
    def sentence(self) -> str:
        """What is said of the target."""
        name = self.roles["label"]
        why = f" (as no --target names one; {self._reason})" if self.guessed else ""
        return f"the target is the column {name}{why}"

    @property
    def _reason(self) -> str:
        name = self.roles["label"]
        return "by its name" if name.lower() in LABEL else "the last one"

    def part(self, name: str) -> NDArray[np.int64]:
        """Rows of the table that are in a part: train or test."""
        found: NDArray[np.int64] = self.rows[self.split == name]
        return found

    def dataset(self, name: str, source: Source, notes: tuple[str, ...] = ()) -> Dataset:
        """The dataset of a source with one example for each row of the table."""
        train, test = self.part("train"), self.part("test")
        test = test if len(test) else self.part("spare")
        if not len(train):
            raise DataError(f"{self.columns.file} has no rows to train on; give at least two of different label.")
        given = self._text("label")
        where = f"the column {self.roles['label']} of {self.columns.file}"
        values = class_values(as_labels([given[i] for i in train], where), where)

        def labels(rows: NDArray[np.int64], text: list[str], role: str) -> Labels:
            called = self.roles[role]
            found = as_labels([text[i] for i in rows], where)
            return encode(found, values, lambda i: f"{called} in {self.columns.where(int(rows[i]))}")

        truth = self._text("true_label") if "true_label" in self.roles else None
        if truth is not None and not all(truth[i] for i in train):
            if any(truth[i] for i in train):
                i = next(int(i) for i in train if not truth[i])
                raise DataError(
                    f"{self.columns.where(i)} has no {self.roles['true_label']} but others have; give all or none."
                )
            truth = None
        y_true = None if truth is None else labels(train, truth, "true_label")
        other = None
        if len(test):
            scored = given if truth is None else [t or g for t, g in zip(truth, given, strict=True)]
            other = Split(source.take(test), labels(test, scored, "label"))
        group = self.roles.get("group")
        groups = None if group is None else group_numbers([self.columns.values[group][i] for i in train])
        split = Split(source.take(train), labels(train, given, "label"))
        return Dataset(name, tuple(map(str, values)), split, other, y_true, groups, notes)

    def _text(self, role: str) -> list[str]:
        return self.columns.values[self.roles[role]]


def find_target(columns: Columns, roles: Roles, *, skip_bad: bool) -> Target:
    """The target and the split of a table, as the user says or by looking."""
    known = named(roles, columns)
    there = {name.lower(): name for name in reversed(list(columns.values))}
    for role, usual in (("split", SPLIT), ("true_label", TRUE)):
        name = next((there[name] for name in usual if name in there and there[name] not in known.values()), None)
        if role not in known and name is not None and (role == "true_label" or _splits(columns.values[name])):
            known[role] = name
    guessed = "label" not in known
    if guessed:
        known["label"] = _guess(columns, [name for name in columns.values if name not in known.values()])
    for role, name in known.items():
        if name not in columns.values:
            raise DataError(f"the column {name} of {columns.file} holds lists or structures; give plain values.")
        twins = [other for other, same in known.items() if same == name and other != role]
        if twins:
            raise DataError(f"{columns.file}: the column {name} cannot be both {role} and {twins[0]}; name two.")
    label = columns.values[known["label"]]
    _refuse_measurements(label, known["label"], columns)
    rows = leave_out(
        np.array([not value for value in label], bool),
        "have no label",
        lambda i: f"{columns.where(i)} has an empty {known['label']}",
        skip=skip_bad,
    )
    split = ["train"] * len(columns)
    if "split" in known:
        split = [split_of(value, _where(columns, i)) for i, value in enumerate(columns.values[known["split"]])]
    return Target(columns, known, rows, np.array(split, np.str_)[rows], guessed)


def _where(columns: Columns, i: int) -> Callable[[], str]:
    return lambda: columns.where(i)


def _splits(values: list[str]) -> bool:
    """Whether a column says what is trained on."""
    return any(value.lower() in TRAIN for value in values)


def _guess(columns: Columns, rest: list[str]) -> str:
    """The column that is named as targets are, or else the last one if its values can be classes."""
    by_name = [name for usual in LABEL for name in rest if name.lower() == usual]
    if by_name:
        return by_name[0]
    if rest:
        values = set(columns.values[rest[-1]]) - {""}
        most = FEW if all(map(is_number, values)) else len(columns) // 2
        if 2 <= len(values) <= most:
            return rest[-1]
    raise DataError(
        f"{columns.file} does not say which of its columns is the target (it has: {', '.join(columns.names)}); name it "
        "with --target COLUMN."
    )


def _refuse_measurements(label: list[str], name: str, columns: Columns) -> None:
    values = {value for value in label if value}
    if len(values) > FEW and all(map(is_number, values)) and not all(float(value).is_integer() for value in values):
        raise DataError(
            f"the column {name} of {columns.file} holds measurements, such as {label[0]}; labels are classes, so name "
            "another column with --target."
        )
