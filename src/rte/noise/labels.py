"""Label files: one label per training example, in the order of the training set.

Labels are class numbers 0..K-1 or class names. `key` names an array (.npz, .pt), an entry (.json) or a column (.csv);
a file that holds only one candidate needs none.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.errors import DataError
from rte.files import write_atomic
from rte.noise import checks
from rte.noise.config import LABEL_SUFFIXES
from rte.noise.files import read

Labels = NDArray[np.int64]
PathName = str | PathLike[str]

GIVEN, CLEAN, NAMES, INDEX = "noisy_label", "clean_label", "classes", "index"


@dataclass(frozen=True)
class LabelFile:
    """The given labels y (N,) of a file, and the true ones where it holds them too, as CIFAR-10N does."""

    y: Labels
    clean: Labels | None = None


def export_labels(path: PathName, y: ArrayLike, classes: Sequence[str], *, y_true: ArrayLike | None = None) -> None:
    """Write given labels y (N,), and the true ones if they are given, to a .npz, .npy, .csv or .json file.

    The file is complete or not there. A .npy file holds y alone; the others hold class names as well.
    """
    path = Path(path)
    if path.suffix.lower() not in (".npz", ".npy", ".csv", ".json"):
        raise DataError(f"cannot write labels to {path}; choose a name that ends in .npz, .npy, .csv or .json.")
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent} to write {path.name} to; make it first.")
    columns = {GIVEN: checks.labels(y, len(classes), f"the label file {path}")}
    if y_true is not None:
        columns[CLEAN] = checks.labels(y_true, len(classes), f"the label file {path}")
        if len(columns[CLEAN]) != len(columns[GIVEN]):
            raise DataError(
                f"{path}: {len(columns[GIVEN])} labels but {len(columns[CLEAN])} true ones; give one of each."
            )

    def write(file: IO[bytes]) -> None:
        match path.suffix.lower():
            case ".npz":
                np.savez_compressed(file, **columns, **{NAMES: np.array(classes, dtype=str)})  # type: ignore[arg-type]
            case ".npy":
                np.save(file, columns[GIVEN])
            case ".csv":
                file.write(_as_csv(columns, classes).encode())
            case _:
                entries = {NAMES: list(classes), **{name: column.tolist() for name, column in columns.items()}}
                file.write(json.dumps(entries, ensure_ascii=False).encode())

    write_atomic(path, write)


def import_labels(
    path: PathName, key: str | None = None, *, classes: Sequence[str], examples: int | None = None
) -> Labels:
    """The labels (N,) int64 of a file, checked to be `examples` labels of `classes`."""
    return read_labels(path, key, classes=classes, examples=examples).y


def read_labels(
    path: PathName, key: str | None = None, *, classes: Sequence[str], examples: int | None = None
) -> LabelFile:
    """The labels of a file together with the true labels it may hold beside them."""
    entries = read(path, LABEL_SUFFIXES)
    if Path(path).suffix.lower() == ".csv":
        entries = _columns(entries[""], key, path)
    names = entries.get(NAMES)
    known = tuple(str(name) for name in names) if isinstance(names, list | np.ndarray) else None
    key = _choose(entries, key, path)
    y = _numbered(entries[key], classes, known, f"'{key}' of {path}" if key else str(path))
    if examples is not None and len(y) != examples:
        raise DataError(f"{path} holds {len(y)} labels for {examples} training images; give one label per image.")
    clean_key = key.replace("noisy", "clean") if "noisy" in key else CLEAN
    if clean_key == key or clean_key not in entries:
        return LabelFile(y)
    clean = _numbered(entries[clean_key], classes, known, f"'{clean_key}' of {path}")
    if len(clean) != len(y):
        raise DataError(f"{path} holds {len(y)} labels but {len(clean)} clean ones; make or download it again.")
    return LabelFile(y, clean)


def _choose(entries: dict[str, Any], key: str | None, path: PathName) -> str:
    held = [name for name in entries if name not in (NAMES, INDEX)]
    if key is not None:
        if key not in held:
            raise DataError(
                f"{path} holds no '{key}' but {', '.join(filter(None, held)) or 'one nameless list'}; choose from it."
            )
        return key
    held = [name for name in held if isinstance(entries[name], list | np.ndarray)]
    candidates = [name for name in held if name != CLEAN] or held
    if "label" in candidates:
        return "label"
    if len(candidates) != 1:
        found = ", ".join(candidates) or "nothing"
        raise DataError(
            f"{path} holds {found}; say which are the labels, for example labels:{path}:{(candidates or ['KEY'])[0]}."
        )
    return candidates[0]


def _columns(rows: list[list[str]], key: str | None, path: PathName) -> dict[str, Any]:
    """The columns of a table by name, its rows put in the order of its index column, if there is one."""
    if not rows:
        raise DataError(f"{path} is empty; write one row 'index,label' per training image.")
    header = [cell.lower() for cell in rows[0]]
    if {"label", INDEX, GIVEN} & set(header) or key in rows[0]:
        rows, names = rows[1:], rows[0]
        names = [INDEX if cell.lower() == INDEX else cell for cell in names]
    else:
        names = {1: ["label"], 2: [INDEX, "label"]}.get(len(header), [])
        if not names:
            raise DataError(f"{path} has {len(header)} columns and no header; start it with the line 'index,label'.")
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise DataError(
                f"{path}: data row {number + 1} has {len(row)} cells instead of {len(names)}; mend that row."
            )
    table = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    if INDEX not in table:
        return table
    order = _positions(table[INDEX], path)
    return {name: [column[at] for at in order] for name, column in table.items()}


def _positions(index: list[str], path: PathName) -> list[int]:
    """For each example 0..N-1 the row it is in; each must be there once."""
    where: dict[int, int] = {}
    for row, cell in enumerate(index):
        if not cell.isdecimal() or int(cell) in where:
            wrong = "appears twice" if cell.isdecimal() else "is no whole number"
            raise DataError(
                f"{path}: the index '{cell}' in data row {row + 1} {wrong}; number the images 0 to N-1, each once."
            )
        where[int(cell)] = row
    missing = next((i for i in range(len(index)) if i not in where), None)
    if missing is not None:
        raise DataError(f"{path}: no row has index {missing}; number the images 0 to {len(index) - 1}, each once.")
    return [where[i] for i in range(len(index))]


def _numbered(values: Any, classes: Sequence[str], known: tuple[str, ...] | None, what: str) -> Labels:
    """Class names or numbers as numbers 0..K-1; numbers count in the file's own list of classes where it has one."""
    array = np.asarray(values) if not isinstance(values, list) or _uniform(values) else None
    if array is None or array.ndim != 1 or array.dtype.kind not in "iuU" or not len(array):
        raise DataError(f"{what} is no list of class numbers or class names; give one label per training image.")
    if array.dtype.kind == "U":
        if np.isin(array, np.array(classes, dtype=str)).all():
            return _by_name(array, classes)
        if not all(cell.isdecimal() for cell in array):
            stranger = next(str(cell) for cell in array if cell not in classes and not cell.isdecimal())
            raise DataError(
                f"{what} has the label '{stranger}', which is none of the {len(classes)} classes ({_some(classes)})."
            )
        array = np.array([int(cell) for cell in array])
    own = known if known is not None else tuple(classes)
    outside = np.flatnonzero((array < 0) | (array >= len(own)))
    if len(outside):
        i = int(outside[0])
        raise DataError(
            f"{what} has label {array[i]} at {i}, but there are {len(own)} classes; labels must be 0 to {len(own) - 1}."
        )
    if own == tuple(classes):
        return array.astype(np.int64)
    strangers = sorted({own[k] for k in np.unique(array)} - set(classes))
    if strangers:
        raise DataError(
            f"{what} has the label '{strangers[0]}', which is none of the {len(classes)} classes ({_some(classes)})."
        )
    return _by_name(np.array(own, dtype=str)[array], classes)


def _uniform(values: list[Any]) -> bool:
    return all(type(value) is int for value in values) or all(type(value) is str for value in values)


def _by_name(names: NDArray[np.str_], classes: Sequence[str]) -> Labels:
    number = {name: k for k, name in enumerate(classes)}
    found, at = np.unique(names, return_inverse=True)
    return np.array([number[str(name)] for name in found], dtype=np.int64)[at]


def _some(classes: Sequence[str]) -> str:
    return ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")


def _as_csv(columns: dict[str, Labels], classes: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([INDEX, *({GIVEN: "label"}.get(name, name) for name in columns)])
    names = [[classes[k] for k in column] for column in columns.values()]
    writer.writerows(zip(range(len(names[0])), *names, strict=True))
    return text.getvalue()
