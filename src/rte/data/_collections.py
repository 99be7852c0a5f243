"""What the readers of published photograph collections share: where one lies, its lists, its images.

Collections have up to a million files, so nothing here opens an image or asks the file system about files one by one:
a folder is listed in one sweep, and sizes are left unknown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rte.data._places import required
from rte.data.files import MEGAPIXELS, SUFFIXES, FileImages
from rte.data.types import Labels, Split
from rte.errors import DataError
from rte.settings import Settings, setting


class PhotoConfig(Settings):
    """How photographs are read."""

    shorter: int | None = setting(512, "reduce images whose shorter side is longer than this; none: as they are", ge=1)
    megapixels: int = setting(MEGAPIXELS, "refuse images that have more, once decoded", ge=1)
    cache_mb: int = setting(0, "memory that decoded images may take, in MiB", ge=0)


@dataclass(frozen=True)
class Collection:
    """A collection that cannot be fetched for the user: what it is called, how to get it, where it may lie.

    `folders` are tried in turn below the data folder; the one that holds `mark` is it.
    """

    title: str
    name: str
    get: str
    folders: tuple[str, ...]
    mark: str

    @property
    def remedy(self) -> str:
        return f"{self.get} (docs/datasets/{self.name}.md)."


def data_folder(collection: Collection, data_dir: Path | None) -> Path:
    """The folder datasets are looked for under, or the sentence that tells how to name one."""
    return required(data_dir, collection.title, collection.remedy)


def locate(collection: Collection, data_dir: Path) -> Path:
    """The folder of a collection, or the sentence on what was expected where."""
    for place in collection.folders:
        if (data_dir / place / collection.mark).exists():
            return data_dir / place
    first, *others = (str(data_dir / place / collection.mark) for place in collection.folders)
    raise DataError(
        f"{collection.title} is not in {data_dir}; expected {first} (or {', '.join(others)}); "
        f"to get it, {collection.remedy}"
    )


def read_lines(file: Path, collection: Collection) -> list[str]:
    """The lines of a text file of a collection, in order, stripped; empty lines at its end are dropped."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{file} of {collection.title} is missing; to get it, {collection.remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read ({error}); to get it again, {collection.remedy}") from None
    lines = [line.strip() for line in text.rstrip().splitlines()]
    if not lines:
        raise DataError(f"{file} is empty; to get it again, {collection.remedy}")
    return lines


def listing(folder: Path) -> list[tuple[str, bool]]:
    """The visible children of a folder, sorted, from one sweep: name, and whether it is a folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder} cannot be listed ({error.strerror}); check that it is a readable folder.") from None


def image_names(folder: Path) -> list[str]:
    """The names of the images directly in a folder, sorted."""
    return [name for name, is_folder in listing(folder) if not is_folder and name.lower().endswith(SUFFIXES)]


def check_present(paths: Sequence[Path], listed: Path, collection: Collection) -> None:
    """Refuse a list that names images which are not there; each folder is listed once."""
    there: dict[Path, set[str]] = {}
    absent = []
    for path in paths:
        folder = path.parent
        if folder not in there:
            there[folder] = set(image_names(folder)) if folder.is_dir() else set()
        if path.name not in there[folder]:
            absent.append(path)
    if absent:
        raise DataError(
            f"{len(absent):,} of the {len(paths):,} images that {listed} lists are missing, the first is {absent[0]}; "
            f"unpack the images again, or to get them, {collection.remedy}"
        )


def photographs(paths: Sequence[Path], y: Labels, cfg: PhotoConfig) -> Split:
    """Colour images of whatever size, and their labels (N,)."""
    return Split(FileImages(paths, None, 3, shorter=cfg.shorter, megapixels=cfg.megapixels, cache_mb=cfg.cache_mb), y)
