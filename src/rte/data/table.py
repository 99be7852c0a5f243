"""Images listed in a table: CSV, TSV or Parquet with a column of paths and a column of labels."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data._columns import Columns
from rte.data._columns import read as read_columns
from rte.data._labels import as_labels, class_values, encode, named_values
from rte.data._own import finished, group_numbers
from rte.data._photos import Photos, opened
from rte.data._places import find
from rte.data._roles import Roles, roles_of, split_of
from rte.data._useless import leave_out
from rte.data.types import Dataset, Labels, Split, Subset
from rte.errors import DataError
from rte.settings import setting

SUMMARY = "your own image files, listed in a .csv, .tsv or .parquet with columns of paths and labels"


class Config(Photos):
    """Which table, and how its images are read."""

    path: str = setting(..., "the table, from here or from the data folder")
    classes: tuple[str, ...] | None = setting(None, "the names of all classes; none: every label is one", strict=False)


@dataclass(frozen=True)
class Listed:
    """The rows that are used, (N,) each; `true` is None where no row has a true label."""

    where: Columns
    rows: NDArray[np.int64]
    paths: list[str]
    label: list[str]
    split: NDArray[np.str_]
    true: list[str] | None
    group: list[str] | None

    def take(self, kept: NDArray[np.int64]) -> Listed:
        def some(values: list[str] | None) -> list[str] | None:
            return None if values is None else [values[i] for i in kept]

        paths, label = ([values[i] for i in kept] for values in (self.paths, self.label))
        return Listed(self.where, self.rows[kept], paths, label, self.split[kept], some(self.true), some(self.group))

    def line(self, i: int) -> str:
        return self.where.where(int(self.rows[i]))


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The images of a table; classes are the sorted labels of its training rows.

    Test images are scored by their true label where the table has it, else by the given one.
    """
    file = find(cfg.path, data_dir, folder=False)
    listed = usable(read(file, cfg.columns), cfg)
    refuse_doubles(listed, file)
    train, test = parts(listed)
    if not len(train):
        raise DataError(f"{file} lists no training images; give at least two rows of different label.")
    values = class_values(as_labels([listed.label[i] for i in train], str(file)), f"the column label of {file}")
    if cfg.classes is not None:
        values = named_values(cfg.classes, values, "data.classes")
    kept = leave_out(
        np.isin(np.array(listed.label)[test], values, invert=True) if len(test) else np.zeros(0, bool),
        "are labelled as no class of the training images",
        lambda i: (
            f"the label in {listed.line(int(test[i]))} is {listed.label[test[i]]}, which is none of the "
            f"{len(values)} classes ({', '.join(map(str, values[:8]))}{', …' if len(values) > 8 else ''})"
        ),
        skip=cfg.skip_bad,
    )
    listed, n = listed.take(np.concatenate([train, test[kept]])), len(train)

    def labels(part: slice, texts: list[str]) -> Labels:
        first = part.start or 0
        return encode(as_labels(texts[part], str(file)), values, lambda i: f"the label in {listed.line(first + i)}")

    learnt, tested = slice(0, n), slice(n, None)
    truth = None if listed.true is None else true_labels(listed, n)
    y, y_true = labels(learnt, listed.label), None if truth is None else labels(learnt, truth)
    scored = listed.label if listed.true is None else [t or g for t, g in zip(listed.true, listed.label, strict=True)]
    images = opened(listed.paths, cfg)
    split = Split(Subset(images, np.arange(n)), y)
    other = Split(Subset(images, np.arange(n, len(images))), labels(tested, scored)) if n < len(images) else None
    groups = None if listed.group is None else group_numbers(listed.group[:n])
    data = Dataset(file.stem, tuple(map(str, values)), split, other, y_true, groups)
    return finished(data, cfg, file.parent, data_dir)


def read(file: Path, roles: Roles) -> Listed:
    """All rows of a table; relative paths start at its folder."""
    columns = read_columns(file)
    role = roles_of(roles, columns)
    values = {name: columns.values[column] for name, column in role.items() if column in columns.values}
    for name, column in role.items():
        if name not in values:
            raise DataError(f"the column {column} of {file} holds lists or structures; give one of plain values.")
    folder, n = os.path.dirname(file), len(columns)
    paths = [os.path.join(folder, os.path.expanduser(path)) if path else "" for path in values["path"]]
    split = [split_of(text, partial(columns.where, i)) for i, text in enumerate(values.get("split", ["train"] * n))]
    true = values.get("true_label")
    true = true if true is not None and any(true) else None
    rows = np.arange(n)
    return Listed(columns, rows, paths, values["label"], np.array(split, np.str_), true, values.get("group"))


def usable(listed: Listed, cfg: Config) -> Listed:
    """The rows that name a file which is there, and a label; `classes`, if the user names them, are all there are."""

    def check(listed: Listed, bad: list[bool], what: str, wrong: str) -> Listed:
        def first(i: int) -> str:
            return f"{listed.line(i)} {wrong.format(path=listed.paths[i], label=listed.label[i])}"

        return listed.take(leave_out(np.array(bad, bool), what, first, skip=cfg.skip_bad))

    listed = check(listed, [not path for path in listed.paths], "name no file", "has an empty path")
    listed = check(listed, [not label for label in listed.label], "have no label", "has an empty label")
    absent = [not is_file(path) for path in listed.paths]
    listed = check(listed, absent, "name files that do not exist", "names {path}, which does not exist")
    if cfg.classes is not None:
        known = set(cfg.classes)
        strange = [label not in known for label in listed.label]
        listed = check(listed, strange, "have a label that is no class", "has the label '{label}', which is no class")
    return listed


def is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def parts(listed: Listed) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train and to test on; those for validation are tested on where none is for the test."""
    train, test, spare = (np.flatnonzero(listed.split == name) for name in ("train", "test", "spare"))
    return train, test if len(test) else spare


def refuse_doubles(listed: Listed, file: Path) -> None:
    """One file with two labels says nothing, and one in both splits would be tested on what it was trained on."""
    first: dict[tuple[int, int], int] = {}
    for i, path in enumerate(listed.paths):
        status = os.stat(path)
        before = first.setdefault((status.st_dev, status.st_ino), i)
        if before == i:
            continue
        where, here = listed.line(before), listed.line(i).removesuffix(f" of {file}")
        if listed.split[before] != listed.split[i]:
            raise DataError(
                f"{path} is listed for {listed.split[before]} in {where} and for {listed.split[i]} in {here}; "
                "keep one of the lines."
            )
        if listed.label[before] != listed.label[i]:
            raise DataError(
                f"{path} has the label '{listed.label[before]}' in {where} and '{listed.label[i]}' in {here}; "
                "keep one of the lines."
            )


def true_labels(listed: Listed, n: int) -> list[str]:
    """The true labels of the n training rows; if only some have one, it is unclear what the others should count as."""
    assert listed.true is not None
    for i in range(n):
        if not listed.true[i]:
            raise DataError(f"{listed.line(i)} has no true_label but other lines have; give all of them or none.")
    return listed.true
