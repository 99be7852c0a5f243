"""Images in folders: one sub-folder per class, perhaps under train/ and test/."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import field_validator

from rte.data._label_file import match
from rte.data._labels import as_labels, class_values, encode, sorted_by_value
from rte.data._own import group_numbers, with_test_share
from rte.data._photos import Photos, opened
from rte.data._places import find
from rte.data.files import SUFFIXES, image_files, walk
from rte.data.types import Dataset, Labels, Split, Subset
from rte.errors import DataError
from rte.settings import setting

SUMMARY = "your own image files, one sub-folder per class, or train/ and test/ (val/, valid/) with such sub-folders"
TEST = ("test", "val", "valid", "validation")
"""What the folder of test images may be called, beside train."""
ADVICE = "put the images of each class in a sub-folder of its own, at least two, or name a table with --labels"


class Config(Photos):
    """Which folder, and how its images are read."""

    path: str = setting(..., "the folder, from here or from the data folder")
    group: str | None = setting(
        None, "a regular expression: images in whose path it finds the same stay together when some are set apart"
    )

    @field_validator("group")
    @classmethod
    def _an_expression(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"this is no regular expression ({error})") from None
        return value


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The images below a folder; classes are the sub-folders of the training part, sorted by name or number.

    With a label file, the images that it names; those in a test folder keep the class of their sub-folder unless the
    file names them.
    """
    root = find(cfg.path, data_dir, folder=True)
    if cfg.labels is not None:
        return labelled(root, find(cfg.labels, data_dir, folder=False), cfg)
    train_root, test_root = parts(root)
    classes = classes_in(train_root)
    train_paths, y = images_of(train_root, classes)
    test_paths, y_test = images_of(test_root, classes) if test_root else ([], np.zeros(0, dtype=np.int64))
    data = of_files(root, train_paths, y, test_paths, y_test, classes, cfg)
    return with_test_share(data, cfg.test_share, cfg.test_seed)


def of_files(
    root: Path, paths: list[str], y: Labels, test: list[str], y_test: Labels, classes: Sequence[str], cfg: Config
) -> Dataset:
    """The dataset of some files below a folder."""
    images, n = opened(paths + test, cfg), len(paths)
    # One FileImages for both parts: they share its cache, its size and its number of channels.
    apart = Split(Subset(images, np.arange(n, len(images))), y_test) if test else None
    name, train = root.resolve().name or "folder", Split(Subset(images, np.arange(n)), y)
    return Dataset(
        name, tuple(classes), train, apart, groups=None if cfg.group is None else found_in(paths, root, cfg.group)
    )


def found_in(paths: list[str], root: Path, group: str) -> Labels:
    """The group of each path below `root`: what the first bracket of the expression matches, or all of it."""
    expression = re.compile(group)
    found = [expression.search(os.path.relpath(path, root).replace(os.sep, "/")) for path in paths]
    return group_numbers(["" if one is None else one.group(min(1, expression.groups)) or "" for one in found])


def classes_in(root: Path) -> tuple[str, ...]:
    """The names of the sub-folders, sorted by name or number: at least two."""
    classes = tuple(sorted_by_value(child.name for child in subfolders(root)))
    if len(classes) < 2:
        raise DataError(f"{root} has {len(classes)} class {'folder' if len(classes) == 1 else 'folders'}; {ADVICE}.")
    return classes


def labelled(root: Path, file: Path, cfg: Config) -> Dataset:
    """The images below a folder that a label file names, with its labels."""
    paths = image_files(root)
    _, test_root = parts(root)
    names = [os.path.relpath(path, root).replace(os.sep, "/") for path in paths]
    given = match(file, names, cfg.columns, skip=cfg.skip_bad)
    inside = f"{test_root.name}/" if test_root else "\0"
    kinds = given.split or ["test" if names[i].startswith(inside) else "train" for i in given.rows]
    spare = "test" if "test" in kinds else "spare"
    train, test = ([k for k, kind in enumerate(kinds) if kind == one] for one in ("train", spare))
    values = class_values(as_labels([given.label[k] for k in train], str(file)), f"the column of labels in {file}")
    classes = tuple(map(str, values))

    def chosen(rows: list[int]) -> tuple[list[str], Labels]:
        names_of = as_labels([given.label[k] for k in rows], str(file))
        return [paths[given.rows[k]] for k in rows], encode(
            names_of, values, lambda k: f"{file}: the label of {rows[k]}"
        )

    learnt, y = chosen(train)
    tested, y_test = chosen(test)
    if not test and test_root is not None and given.split is None and subfolders(test_root):
        tested, y_test = images_of(test_root, classes)
    data = of_files(root, learnt, y, tested, y_test, classes, cfg)
    if given.group is not None:
        data = replace(data, groups=group_numbers([given.group[k] for k in train]))
    return with_test_share(data, cfg.test_share, cfg.test_seed)


def parts(root: Path) -> tuple[Path, Path | None]:
    """(training folder, test folder): root itself, or root/train with the first of root/test, val, valid, validation.

    A folder `train` that holds images and no folders is a class of that name.
    """
    train = root / "train"
    if not train.is_dir() or not subfolders(train):
        return root, None
    for name in TEST:
        if (root / name).is_dir():
            return train, root / name
    return train, None


def subfolders(folder: Path) -> list[Path]:
    return sorted((child for child in visible(folder) if child.is_dir()), key=lambda child: child.name)


def visible(folder: Path) -> list[Path]:
    try:
        return [child for child in folder.iterdir() if not child.name.startswith(".")]
    except OSError as error:
        raise DataError(f"{folder} cannot be listed ({error.strerror}); check its permissions.") from error


def images_of(root: Path, classes: tuple[str, ...]) -> tuple[list[str], Labels]:
    """All images below root/<class>, sorted by path within a class, and their labels."""
    strange = [child for child in subfolders(root) if child.name not in classes]
    if strange:
        raise DataError(
            f"{strange[0]} is no class of the training images ({', '.join(classes[:8])}"
            f"{', …' if len(classes) > 8 else ''}); remove or rename the folder."
        )
    paths: list[str] = []
    counts = []
    for name in classes:
        found, skipped = walk(root / name) if (root / name).is_dir() else ([], 0)
        if not found and (root / name).is_dir():
            ignored = f" ({skipped} other files were ignored)" if skipped else ""
            raise DataError(
                f"{root / name} holds no image{ignored}; put images there ({' '.join(SUFFIXES)}) or remove the folder."
            )
        paths += found
        counts.append(len(found))
    if not paths:
        raise DataError(f"{root} holds no images; put one sub-folder per class there, named as in the training folder.")
    return paths, np.repeat(np.arange(len(classes)), counts).astype(np.int64)
