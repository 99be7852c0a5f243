"""What the columns of a table are for: as the user says, or as their names and values tell."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

from rte.data._columns import Columns
from rte.data._paths import SUFFIXES
from rte.errors import DataError, did_you_mean
from rte.settings import Settings, setting

IMAGE = ("path", "file", "filename", "file_name", "filepath", "file_path", "image", "image_path", "img", "img_path")
LABEL = ("label", "labels", "class", "class_name", "label_name", "category", "target", "y", "given_label")
SPLIT = ("split", "subset", "partition", "set")
TRUE = ("true_label",)
TRAIN, TEST, SPARE = ("train", "training"), ("test", "testing"), ("val", "valid", "validation", "dev")
"""What the values of a split column may be; `SPARE` is tested on where no row is for the test."""


class Roles(Settings):
    """Which column is what; none: found by looking."""

    path: str | None = setting(None, "the paths of images")
    id: str | None = setting(None, "in a label file: what each example is called")
    label: str | None = setting(None, "the given labels")
    split: str | None = setting(None, "train or test")
    true_label: str | None = setting(None, "the true labels, for scoring only")
    group: str | None = setting(None, "rows of one value stay together when examples are set apart")
    text: str | None = setting(None, "texts to be embedded")


def parse_roles(texts: list[str]) -> dict[str, str]:
    """`path=file,label=class`, perhaps in several pieces, as the settings of `Roles`."""
    found: dict[str, str] = {}
    for text in texts:
        for part in next(csv.reader([text]), []):
            role, equals, name = (piece.strip() for piece in part.partition("="))
            if not equals or not name:
                raise DataError(f"--columns {text}: write it as role=column, for example path=file,label=class.")
            if role not in Roles.model_fields:
                raise DataError(
                    f"--columns {text}: there is no role '{role}'; {did_you_mean(role, Roles.model_fields)}"
                )
            found[role] = name
    return found


def named(roles: Roles, columns: Columns) -> dict[str, str]:
    """The columns the user names, as the table spells them."""
    spelt = {name.lower(): name for name in reversed(columns.names)} | {name: name for name in columns.names}
    found = {}
    for role, name in roles.model_dump().items():
        if name is None:
            continue
        known = spelt.get(name, spelt.get(name.lower()))
        if known is None:
            near = did_you_mean(name, columns.names)
            raise DataError(f"{columns.file} has no column '{name}' (for {role}); {near}")
        found[role] = known
    return found


def roles_of(roles: Roles, columns: Columns, example: str = "path") -> dict[str, str]:
    """The column of each role that a list of labelled files has; what the user says counts, the rest is found.

    `example` is the role of the column that names each example: path, or id in a label file.
    """
    found = named(roles, columns)
    if example not in found:
        paths = [name for name in columns.values if looks_like_paths(columns, name)]
        first = {"id": ("id", *IMAGE), "path": IMAGE}[example]
        known = _by_name(columns, first) if example == "id" or not paths else None
        found[example] = known or _by_name(columns, IMAGE, paths) or _only(paths) or _refuse(example, columns)
    for role, usual in (("split", SPLIT), ("true_label", TRUE)):
        name = _by_name(columns, usual)
        if role not in found and name is not None and (name.lower() in (*TRUE, "split") or _are_splits(columns, name)):
            found[role] = name
    if "label" not in found:
        rest = [name for name in columns.values if name not in found.values()]
        found["label"] = _by_name(columns, LABEL, rest) or _only(rest) or _refuse("label", columns)
    if found[example] == found["label"]:
        raise DataError(f"{columns.file}: the column {found['label']} cannot be both {example} and label; name two.")
    return found


def looks_like_paths(columns: Columns, name: str) -> bool:
    """Whether a column names images: nine in ten of its values end as image files do."""
    values = [value for value in columns.values[name] if value]
    return bool(values) and sum(value.lower().endswith(SUFFIXES) for value in values) >= 0.9 * len(values)


def lists_images(columns: Columns, roles: Roles) -> bool:
    """Whether a table is a list of image files: as the user says, or by its values."""
    if roles.path is not None or roles.text is not None:
        return roles.path is not None
    if any(looks_like_paths(columns, name) for name in columns.values):
        return True
    name = _by_name(columns, IMAGE)
    return name is not None and any(_is_file(columns.file, value) for value in columns.values[name][:20])


def _is_file(table: Path, value: str) -> bool:
    try:
        return bool(value) and os.path.isfile(os.path.join(table.parent, os.path.expanduser(value)))
    except ValueError:  # a zero byte
        return False


def _by_name(columns: Columns, usual: tuple[str, ...], among: list[str] | None = None) -> str | None:
    """The first column with a usual name."""
    there = {name.lower().replace(" ", "_"): name for name in columns.values if among is None or name in among}
    return next((there[name] for name in usual if name in there), None)


def _only(names: list[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def _are_splits(columns: Columns, name: str) -> bool:
    """Whether a column says what is trained on; one that only has its name is a column like others."""
    some = (*TRAIN, *TEST, *SPARE)
    return any(value.lower() in some for value in columns.values[name])


def _refuse(role: str, columns: Columns) -> str:
    raise DataError(
        f"{columns.file} does not say which of its columns is the {role} (it has: {', '.join(columns.names)}); "
        f"name it with --columns {role}=COLUMN."
    )


def split_of(value: str, where: Callable[[], str]) -> str:
    """train, test or spare: what a value of a split column means."""
    plain = value.lower()
    for name, words in (("train", TRAIN), ("test", TEST), ("spare", SPARE)):
        if plain in words:
            return name
    known = (*TRAIN[:1], *TEST[:1], *SPARE)
    raise DataError(f"{where()} has the split '{value}'; {did_you_mean(plain, known)}")
