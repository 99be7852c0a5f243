"""What all data of the user's own has in common: another file of labels, and examples set apart for testing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rte.data._label_file import Given, match
from rte.data._labels import as_labels, class_values, encode, sorted_by_value
from rte.data._places import find
from rte.data._roles import Roles
from rte.data._useless import SKIP
from rte.data.ids import ids
from rte.data.statistics import holdout
from rte.data.types import Dataset, Labels, Source, Split
from rte.errors import DataError
from rte.settings import Settings, setting


class Own(Settings):
    """Which labels count, what is set apart for testing, and what becomes of examples that cannot be used."""

    labels: str | None = setting(None, "a table of ids and labels that count instead; examples not in it are left out")
    columns: Roles = setting(Roles(), "which column of a table is what; found by looking where it is not said")
    skip_bad: bool = setting(False, SKIP)
    test_share: float = setting(0.0, "share of the training examples set apart for testing", ge=0.0, lt=1.0)
    test_seed: int = setting(0, "decides which examples these are; the seed of the run does not", ge=0)


def finished(data: Dataset, cfg: Own, root: Path, data_dir: Path | None) -> Dataset:
    """The dataset with the labels of `cfg.labels`, if there is such a file, and a share set apart for testing.

    Ids in the file are paths below the folder `root`.
    """
    if cfg.labels is not None:
        name = ids(data.train.images, root)
        names = [name(i) for i in range(len(data.train))]
        given = match(find(cfg.labels, data_dir, folder=False), names, cfg.columns, skip=cfg.skip_bad)
        data = relabelled(data, given)
    return with_test_share(data, cfg.test_share, cfg.test_seed)


def named_by(source: Source, file: Path, name: str, cfg: Own) -> Dataset:
    """Examples that have no labels but those of a label file, whose ids are their numbers."""
    given = match(file, [str(i) for i in range(len(source))], cfg.columns, skip=cfg.skip_bad)
    y = as_labels(given.label, str(file))
    values = class_values(y, f"the column of labels in {file}")
    groups = None if given.group is None else group_numbers(given.group)
    train = Split(source.take(given.rows), encode(y, values, str))
    return Dataset(name, tuple(map(str, values)), train, groups=groups)


def relabelled(data: Dataset, given: Given) -> Dataset:
    """The training examples that a label file names, with its labels; classes stay, unless it has others."""
    if given.split is not None and set(given.split) != {"train"}:
        raise DataError("this data says itself what is tested on; take the column of splits out of the label file.")
    test = () if data.test is None else np.unique(data.test.y).tolist()
    known = set(given.label)
    classes = data.classes
    if not known <= set(classes):
        classes = tuple(sorted_by_value(known | {data.classes[k] for k in test}))
    new = np.array([classes.index(name) if name in classes else -1 for name in data.classes])
    only = data.only(given.rows)
    y_true = None if only.y_true is None or (new < 0).any() else new[only.y_true]
    return Dataset(
        data.name,
        classes,
        Split(only.train.images, encode(np.array(given.label), np.array(classes), str)),
        None if data.test is None else Split(data.test.images, new[data.test.y]),
        y_true,
        only.groups if given.group is None else group_numbers(given.group),
    )


def with_test_share(data: Dataset, share: float, seed: int = 0) -> Dataset:
    """The dataset with a share of its training examples set apart as its test split, the same for every run.

    Test examples are scored by their true label where it is known, else by the given one.
    """
    if share == 0:
        return data
    if data.test is not None:
        raise DataError(f"{data.name} has a test split already; leave test_share at 0.")
    rows, held = holdout(data.train.y, share, seed, data.groups)
    test = data.train.take(held)
    return replace(data.only(rows), test=test if data.y_true is None else Split(test.images, data.y_true[held]))


def group_numbers(names: Sequence[str]) -> Labels:
    """Each example's group as a number; an example without a group is one of its own."""
    number: dict[str, int] = {}
    found = [number.setdefault(name or f"\0{i}", len(number)) for i, name in enumerate(names)]
    return np.array(found, np.int64)
