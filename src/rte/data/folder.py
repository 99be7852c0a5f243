"""Images in folders: one sub-folder per class, perhaps under train/ and test/."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from rte.data._labels import sorted_by_value
from rte.data._places import find
from rte.data.files import MEGAPIXELS, SUFFIXES, FileImages, walk
from rte.data.statistics import with_test_share
from rte.data.types import Dataset, Labels, Split, Subset
from rte.errors import DataError
from rte.settings import Settings, setting

SUMMARY = "your own image files, one sub-folder per class, or train/ and test/ (val/, valid/) with such sub-folders"
TEST = ("test", "val", "valid", "validation")
"""What the folder of test images may be called, beside train."""


class Config(Settings):
    """Which folder, and how its images are read."""

    path: str = setting(..., "the folder, from here or from the data folder")
    test_share: float = setting(0.0, "share of the training images set apart for testing", ge=0.0, lt=1.0)
    channels: Literal[1, 3] | None = setting(None, "1 grey, 3 colour; none: grey if all images are")
    shorter: int | None = setting(None, "reduce images whose shorter side is longer than this", ge=1)
    megapixels: int = setting(MEGAPIXELS, "refuse images that have more, once decoded", ge=1)
    cache_mb: int = setting(2048, "memory that decoded images may take, in MiB", ge=0)


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The images below a folder; classes are the sub-folders of the training part, sorted by name or number."""
    root = find(cfg.path, data_dir, folder=True)
    train_root, test_root = parts(root)
    classes = tuple(sorted_by_value(child.name for child in subfolders(train_root)))
    if len(classes) < 2:
        raise DataError(
            f"{train_root} has {len(classes)} class {'folder' if len(classes) == 1 else 'folders'}; "
            "put the images of each class in a sub-folder of its own, at least two."
        )
    train_paths, y = images_of(train_root, classes)
    test_paths, y_test = images_of(test_root, classes) if test_root else ([], np.zeros(0, dtype=np.int64))
    images = FileImages.open(
        train_paths + test_paths,
        channels=cfg.channels,
        shorter=cfg.shorter,
        megapixels=cfg.megapixels,
        cache_mb=cfg.cache_mb,
    )
    n = len(train_paths)
    # One FileImages for both parts: they share its cache, its size and its number of channels.
    train = Split(Subset(images, np.arange(n)), y)
    test = Split(Subset(images, np.arange(n, len(images))), y_test) if test_root else None
    return with_test_share(Dataset(root.name or "folder", classes, train, test), cfg.test_share)


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
