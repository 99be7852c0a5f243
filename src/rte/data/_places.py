"""Where datasets are looked for, and the sentences for when they are not there."""

from __future__ import annotations

from pathlib import Path

from rte.errors import DataError
from rte.files import expanded


def default_folder() -> Path:
    """The folder that datasets are kept in unless another one is named; where that is depends on the platform."""
    from platformdirs import user_data_path

    return user_data_path("rte", appauthor=False)


def required(data_dir: Path | None, title: str, remedy: str) -> Path:
    """The folder datasets are looked for under, or a sentence on how to name one and to get what is missing."""
    folder = default_folder() if data_dir is None else expanded(data_dir)
    if folder.is_dir():
        return folder
    if data_dir is None:
        raise DataError(f"{title} needs a data folder; pass --data-dir DIR or set RTE_DATA; to get the files, {remedy}")
    raise DataError(
        f"the data folder {folder} does not exist; pass another --data-dir or set RTE_DATA; to get {title}, {remedy}"
    )


def find(path: str, data_dir: Path | None, *, folder: bool) -> Path:
    """A path as it was given, from here or else from the data folder; `folder` says which kind it has to be."""
    if not path:
        raise DataError("no path was given; name it, as in folder:PATH, table:FILE.csv or FILE.npz.")
    given, base = expanded(path), default_folder() if data_dir is None else expanded(data_dir)
    places = [given] if given.is_absolute() or (data_dir is None and not base.is_dir()) else [given, base / given]
    for place in places:
        if place.is_dir() if folder else place.is_file():
            return place
    for place in places:
        if place.exists():
            kind, wanted = ("file", "folder") if folder else ("folder", "file")
            raise DataError(f"{place} is a {kind}; give the path of a {wanted}.")
    tried = " or ".join(str(place) for place in places)
    raise DataError(f"{tried} does not exist; give the path of a {'folder' if folder else 'file'} that does.")
