"""Where datasets are looked for, and the sentences for when they are not there."""

from __future__ import annotations

from pathlib import Path

from rte.errors import DataError


def required(data_dir: Path | None, name: str) -> Path:
    """The folder datasets are looked for under, or the sentence that tells how to name one."""
    if data_dir is None:
        raise DataError(
            f"{name} needs a data folder; pass --data-dir DIR or set RTE_DATA "
            f"(`rte data get {name} --to DIR` fetches the files)."
        )
    folder = Path(data_dir).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"the data folder {folder} does not exist; pass another --data-dir or set RTE_DATA, "
            f"or fetch the files into it with `rte data get {name} --to {folder}`."
        )
    return folder


def find(path: str, data_dir: Path | None, *, folder: bool) -> Path:
    """A path as it was given, from here or else from the data folder; `folder` says which kind it has to be."""
    if not path:
        raise DataError("no path was given; name it, as in folder:PATH, table:FILE.csv or FILE.npz.")
    given = Path(path).expanduser()
    places = [given] if data_dir is None or given.is_absolute() else [given, Path(data_dir).expanduser() / given]
    for place in places:
        if place.is_dir() if folder else place.is_file():
            return place
    for place in places:
        if place.exists():
            kind, wanted = ("file", "folder") if folder else ("folder", "file")
            raise DataError(f"{place} is a {kind}; give the path of a {wanted}.")
    tried = " or ".join(str(place) for place in places)
    raise DataError(f"{tried} does not exist; give the path of a {'folder' if folder else 'file'} that does.")
