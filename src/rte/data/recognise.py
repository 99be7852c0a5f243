"""What a user points at: the name of a dataset, a folder or a file becomes the data section of a run.

recognise("photos", known)                    {"name": "folder", "path": "photos"}
recognise("list.csv", known)                  {"name": "table", "path": "list.csv"}, if it lists image files
recognise("people.csv", known)                {"name": "tabular", "path": "people.csv"}, if it does not
recognise("x.npz", known)                     {"name": "vectors", "path": "x.npz"}, if its x is (N, D)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rte.data._columns import SUFFIXES as TABLES
from rte.data._columns import Columns, read
from rte.data._paths import SUFFIXES as IMAGES
from rte.data._places import default_folder
from rte.data._roles import Roles, lists_images, named
from rte.data.vectors import holds_vectors
from rte.errors import DataError, did_you_mean
from rte.files import expanded

Tree = dict[str, Any]
HEAD = 200
"""Rows of a table that are looked at."""
SAVED = ("state.json", "dataset_dict.json")
"""Of these, a dataset that Hugging Face's library saved holds one."""


def recognise(
    text: str, known: Sequence[str], data_dir: Path | None = None, columns: Mapping[str, str] | None = None
) -> Tree:
    """The data section for what the user wrote: `cifar10`, a path, or `KIND:PATH` with one of the `known` kinds.

    A known name counts before a path. `columns` says which column of a table is what (`Roles`).
    """
    name, colon, path = text.partition(":")
    if colon and name in known:
        return {"name": name, "path": path}
    if text in known:
        return {"name": text}
    place = locate(text, data_dir)
    if place is None:
        raise absent(text, known)
    return {**(of_folder(place) if place.is_dir() else of_file(place, columns or {})), "path": text}


def locate(text: str, data_dir: Path | None) -> Path | None:
    """Where a path leads from here, or else from the data folder; None where nothing is."""
    given = expanded(text)
    try:
        places = (given, (default_folder() if data_dir is None else expanded(data_dir)) / given)
        return next((place for place in places if text and place.exists()), None)
    except (OSError, ValueError):  # too long for a path, or with a zero byte
        return None


def absent(text: str, known: Sequence[str]) -> DataError:
    """The sentence on what is neither a dataset nor there."""
    if "/" in text or "." in text or "\\" in text:
        return DataError(f"{text} does not exist; give a folder of images, a table or an .npz file that does.")
    kinds = [name for name in known if name not in ("arrays", "folder", "hf", "table", "vectors", "tabular", "text")]
    return DataError(
        f"there is no dataset '{text}', and no file or folder of that name here; {did_you_mean(text, kinds)}"
    )


def of_folder(folder: Path) -> Tree:
    """A folder of images, or a dataset that Hugging Face's library saved."""
    return {"name": "hf" if any((folder / name).is_file() for name in SAVED) else "folder"}


def of_file(file: Path, columns: Mapping[str, str]) -> Tree:
    """An archive of arrays, or a table: of image files, or else of numbers, words or texts."""
    suffix = file.suffix.lower()
    if suffix in (".npz", ".npy"):
        return {"name": "vectors" if holds_vectors(file) else "arrays"}
    if file.name.lower().endswith(TABLES):
        head, roles = read(file, HEAD), Roles(**columns)
        named(roles, head)
        return {"name": "table"} if lists_images(head, roles) else other_table(head, roles)
    if suffix in IMAGES:
        raise DataError(f"{file} is a single image; give the folder above it, or a table of images and labels.")
    raise DataError(
        f"{file} is of no kind that can be read; give a folder of images, a table ({' '.join(TABLES)}), an .npz or a "
        ".npy file."
    )


def other_table(head: Columns, roles: Roles) -> Tree:
    """The data section of a table that lists no images; `head` are its first rows."""
    return {"name": "text" if roles.text is not None else "tabular"}
