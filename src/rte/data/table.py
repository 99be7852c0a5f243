"""Images listed in a table: a text file with the columns path and label."""

from __future__ import annotations

import csv
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from rte.data._labels import as_labels, class_values, encode
from rte.data._places import find
from rte.data.files import MEGAPIXELS, FileImages
from rte.data.statistics import with_test_share
from rte.data.types import Dataset, Labels, Split, Subset
from rte.errors import DataError, did_you_mean
from rte.settings import Settings, setting

SUMMARY = "your own image files, listed in a .csv or .tsv with the columns path, label and perhaps split, true_label"


class Config(Settings):
    """Which table, and how its images are read."""

    path: str = setting(..., "the .csv or .tsv file, from here or from the data folder")
    test_share: float = setting(0.0, "share of the training images set apart for testing", ge=0.0, lt=1.0)
    channels: Literal[1, 3] | None = setting(None, "1 grey, 3 colour; none: grey if all images are")
    shorter: int | None = setting(None, "reduce images whose shorter side is longer than this", ge=1)
    megapixels: int = setting(MEGAPIXELS, "refuse images that have more, once decoded", ge=1)
    cache_mb: int = setting(2048, "memory that decoded images may take, in MiB", ge=0)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `true_label` is empty where it is not known. `file` is what the system calls the file,
    whatever its path."""

    line: int
    path: str
    file: tuple[int, int]
    label: str
    split: str
    true_label: str


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The images of a table; classes are the sorted labels of its training rows.

    Test images are scored by their true label where the table has it, else by the given one.
    """
    file = find(cfg.path, data_dir, folder=False)
    rows = list(read(file))
    refuse_doubles(rows, file)
    train = [row for row in rows if row.split == "train"]
    test = [row for row in rows if row.split == "test"]
    if not train:
        raise DataError(f"{file} lists no training images; give at least two rows of different label.")
    values = class_values(as_labels([row.label for row in train], str(file)), f"the column label of {file}")

    def labels(part: list[Row], texts: list[str]) -> Labels:
        return encode(as_labels(texts, str(file)), values, lambda i: f"the label in line {part[i].line} of {file}")

    y = labels(train, [row.label for row in train])
    y_test = labels(test, [row.true_label or row.label for row in test])
    y_true = labels(train, true_labels(train, file)) if any(row.true_label for row in train) else None
    images = FileImages.open(
        (row.path for row in train + test),
        channels=cfg.channels,
        shorter=cfg.shorter,
        megapixels=cfg.megapixels,
        cache_mb=cfg.cache_mb,
    )
    n = len(train)
    train_split = Split(Subset(images, np.arange(n)), y)
    test_split = Split(Subset(images, np.arange(n, len(images))), y_test) if test else None
    data = Dataset(file.stem, tuple(str(value) for value in values), train_split, test_split, y_true)
    return with_test_share(data, cfg.test_share)


def refuse_doubles(rows: list[Row], file: Path) -> None:
    """One file with two labels says nothing, and one in both splits would be tested on what it was trained on."""
    first: dict[tuple[int, int], Row] = {}
    for row in rows:
        before = first.setdefault(row.file, row)
        if before.split != row.split:
            raise DataError(
                f"{row.path} is listed for {before.split} in line {before.line} of {file} and for {row.split} in line "
                f"{row.line}; keep one of the lines."
            )
        if before.label != row.label:
            raise DataError(
                f"{row.path} has the label '{before.label}' in line {before.line} of {file} and '{row.label}' in line "
                f"{row.line}; keep one of the lines."
            )


def true_labels(rows: list[Row], file: Path) -> list[str]:
    """The true label of every row; if only some have one, it is unclear what the others should count as: an error."""
    for row in rows:
        if not row.true_label:
            raise DataError(
                f"line {row.line} of {file} has no true_label but other lines have; give all of them or none."
            )
    return [row.true_label for row in rows]


def read(file: Path) -> Iterator[Row]:
    """The rows of a table whose first line names its columns; commas, semicolons or tabs part them."""
    number = 1
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:
            header = text.readline()
            if not header.strip():
                raise DataError(
                    f"{file} begins with an empty line; its first line must name the columns path and label."
                )
            separator = max(",;\t", key=header.count)
            columns = [name.strip().lower() for name in next(csv.reader([header], delimiter=separator))]
            check_columns(columns, file)
            reader = csv.reader(text, delimiter=separator, strict=True)
            for values in reader:
                number = reader.line_num + 1
                if any(value.strip() for value in values):
                    yield row_of(values, columns, number, file)
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text after line {number} ({error.reason}); save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{file} cannot be read after line {number} ({error}); check its quotation marks.") from error


def check_columns(columns: list[str], file: Path) -> None:
    for needed in ("path", "label"):
        if needed not in columns:
            raise DataError(
                f"{file} has no column '{needed}' in its first line (it has: {', '.join(columns)}); "
                "name the columns path and label, and split and true_label if there are any."
            )
    if len(set(columns)) < len(columns):
        raise DataError(
            f"{file} names a column twice in its first line ({', '.join(columns)}); give each its own name."
        )


def row_of(values: list[str], columns: list[str], line: int, file: Path) -> Row:
    """One line as a row; relative paths start at the folder of the table."""
    if len(values) != len(columns):
        raise DataError(
            f"line {line} of {file} has {len(values)} fields but there are {len(columns)} columns; correct the line."
        )
    field = {name: value.strip() for name, value in zip(columns, values, strict=True)}
    for needed in ("path", "label"):
        if not field[needed]:
            raise DataError(f"line {line} of {file} has an empty {needed}; fill it in or remove the line.")
    split = field.get("split", "train").lower()
    if split not in ("train", "test"):
        raise DataError(f"line {line} of {file} has the split '{split}'; {did_you_mean(split, ('train', 'test'))}")
    path = os.path.join(os.path.dirname(file), os.path.expanduser(field["path"]))
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        status = None
    if status is None or not stat.S_ISREG(status.st_mode):
        raise DataError(
            f"line {line} of {file} names {path}, which does not exist; correct the path or remove the line."
        )
    number = (status.st_dev, status.st_ino)
    return Row(line, path, number, sys.intern(field["label"]), sys.intern(split), field.get("true_label", ""))
