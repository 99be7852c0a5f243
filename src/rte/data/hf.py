"""A dataset that Hugging Face's library `datasets` saved with `save_to_disk`: images and their labels."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data._labels import as_labels, class_values, encode
from rte.data._own import finished, group_numbers
from rte.data._photos import Photos
from rte.data._places import find
from rte.data._roles import IMAGE, LABEL, SPARE, TEST, TRAIN, TRUE
from rte.data._useless import leave_out
from rte.data.files import decode
from rte.data.types import Dataset, Images, Pixels, Split, Subset
from rte.errors import DataError, did_you_mean
from rte.settings import setting

SUMMARY = "a folder that save_to_disk of Hugging Face's datasets wrote: images and labels (extra `hf`)"


class Config(Photos):
    """Which folder, which of its columns, and how its images are read."""

    path: str = setting(..., "the folder, from here or from the data folder")


class Stored:
    """The images of one column, decoded when they are asked for; the file is mapped, not read into memory."""

    def __init__(self, rows: Any, column: str, cfg: Config, where: str) -> None:
        self.rows, self.column, self.cfg, self.where = rows, column, cfg, where
        self.channels = cfg.channels or 3

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> None:
        return None

    def fetch(self, index: NDArray[np.int64]) -> list[Pixels]:
        return [self._image(int(i)) for i in index]

    def _image(self, i: int) -> Pixels:
        found = self.rows[i][self.column]
        if found is None or (found["bytes"] is None and not found["path"]):
            raise DataError(f"{self.label(i)} holds no image; take the row out.")
        file = found["path"] if found["bytes"] is None else io.BytesIO(found["bytes"])
        return decode(file, self.channels, self.cfg.shorter, self.cfg.megapixels, called=self.label(i))

    def label(self, i: int) -> str:
        return f"row {i} of {self.where}"

    def take(self, rows: NDArray[np.int64]) -> Images:
        return Subset(self, rows)


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The images of the splits train and test (or validation); classes are those the column of labels declares."""
    root = find(cfg.path, data_dir, folder=True)
    if find_spec("datasets") is None:
        raise DataError(f"{root} was saved by Hugging Face's datasets; pip install 'robust-temporal-ensembling[hf]'.")
    train, test = splits(open_saved(root), root)
    image, label = columns(train, cfg, root)
    train = labelled(train, label, f"{root}: train", skip=cfg.skip_bad)
    test = None if test is None else labelled(test, label, f"{root}: test", skip=cfg.skip_bad)
    declared = getattr(train.features[label], "names", None)
    values = None if declared is None else np.arange(len(declared))
    y = labels(train, label, root)
    values = class_values(y, f"the column {label} of {root}") if values is None else values
    names = tuple(declared) if declared is not None else tuple(map(str, values))

    def split(rows: Any, part: str) -> Split:
        where = f"{root}: {part}"
        source = Stored(rows.cast_column(image, undecoded()), image, cfg, where)
        return Split(source, encode(labels(rows, label, root), values, lambda i: f"the label in row {i} of {where}"))

    y_true = None
    if TRUE[0] in train.column_names:
        y_true = encode(labels(train, TRUE[0], root), values, lambda i: f"the true label in row {i} of {root}")
    groups = None if cfg.columns.group is None else group_numbers([str(g) for g in train[cfg.columns.group]])
    data = Dataset(
        root.name, names, split(train, "train"), None if test is None else split(test, "test"), y_true, groups
    )
    return finished(data, cfg, root, data_dir)


def open_saved(root: Path) -> Any:
    import datasets

    try:
        return datasets.load_from_disk(str(root))
    except Exception as error:  # whatever the library makes of a damaged folder
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"{root} cannot be read by Hugging Face's datasets ({reason}); save it again.") from None


def undecoded() -> Any:
    import datasets

    return datasets.Image(decode=False)


def splits(saved: Any, root: Path) -> tuple[Any, Any]:
    """What is trained on, and what is tested on, if anything."""
    if not isinstance(saved, dict):
        return saved, None
    train = next((saved[name] for name in TRAIN if name in saved), None)
    if train is None:
        raise DataError(f"{root} has no split train (it has: {', '.join(saved)}); save one under this name.")
    return train, next((saved[name] for name in (*TEST, *SPARE) if name in saved), None)


def columns(rows: Any, cfg: Config, root: Path) -> tuple[str, str]:
    """The columns of images and of labels."""
    import datasets

    images = [name for name, kind in rows.features.items() if isinstance(kind, datasets.Image)]
    classes = [name for name, kind in rows.features.items() if isinstance(kind, datasets.ClassLabel)]

    def one(role: str, chosen: str | None, usual: tuple[str, ...], of_kind: list[str]) -> str:
        if chosen is not None:
            if chosen not in rows.column_names:
                raise DataError(
                    f"{root} has no column '{chosen}' (for {role}); {did_you_mean(chosen, rows.column_names)}"
                )
            return chosen
        found = [name for name in usual if name in (of_kind or rows.column_names)] or of_kind
        if len(found) == 1 or (found and found[0] in usual):
            return found[0]
        raise DataError(
            f"{root} does not say which of its columns is the {role} (it has: {', '.join(rows.column_names)}); name it "
            f"with --columns {role}=COLUMN."
        )

    image = one("path", cfg.columns.path, IMAGE, images)
    if image not in images:
        raise DataError(f"the column {image} of {root} holds no images; name the one that does: --columns path=COLUMN.")
    return image, one("label", cfg.columns.label, LABEL, classes)


def labelled(rows: Any, column: str, where: str, *, skip: bool) -> Any:
    """The rows that have a label."""
    missing = np.array([value is None or value in (-1, "") for value in rows[column]], bool)
    kept = leave_out(missing, "have no label", lambda i: f"row {i} of {where} has no {column}", skip=skip)
    return rows.select(kept) if missing.any() else rows


def labels(rows: Any, column: str, root: Path) -> NDArray[Any]:
    return as_labels(np.asarray(list(rows[column])), f"the column {column} of {root}")
