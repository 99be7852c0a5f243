"""The record format of the official CIFAR releases, binary and python.

A binary record is the label bytes, then 3072 bytes in channel, row, column order. A python file is a pickled dictionary
with the same 3072 bytes per image and lists of labels; it is read by an unpickler that can build nothing but those.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rte.data._places import required
from rte.data.types import ArrayImages, Dataset, Labels, Pixels, Split
from rte.errors import DataError

PIXELS = 3 * 32 * 32
BLOCK = 512


@dataclass(frozen=True)
class Release:
    """Files of one official release. `labels` names the labels of a record in order, as the python release does."""

    title: str
    name: str
    binary_folder: str
    python_folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: tuple[str, ...]
    train_records: int
    test_records: int


@dataclass(frozen=True)
class Place:
    """A folder that may hold one form of a release."""

    folder: Path
    binary: bool

    def file(self, stem: str) -> Path:
        return self.folder / (f"{stem}.bin" if self.binary else stem)

    def missing(self, stems: Sequence[str]) -> list[str]:
        return [self.file(stem).name for stem in stems if not self.file(stem).is_file()]


def load_release(
    release: Release, data_dir: Path | None, *, label: str, classes: tuple[str, ...], name: str
) -> Dataset:
    """The dataset of a release, found in the data folder or in its own folder below, with the named kind of label."""
    place = locate(release, required(data_dir, release.name, f"run `rte data get {release.name}`."))
    parts = []
    for stems, records in ((release.train, release.train_records), (release.test, release.test_records)):
        pixels, y = read(release, place, stems, records, label, len(classes))
        parts.append(Split(ArrayImages(pixels), y))
    train, test = parts
    return Dataset(name, classes, train, test, y_true=train.y.copy())


def locate(release: Release, data_dir: Path) -> Place:
    """The first place that holds all files of the release; else a sentence on what is missing where."""
    stems = release.train + release.test
    places = [
        Place(folder, binary)
        for own, binary in ((release.binary_folder, True), (release.python_folder, False))
        for folder in (data_dir / own, data_dir)
    ]
    for place in places:
        if not place.missing(stems):
            return place
    remedy = f"`rte data get {release.name} --to {data_dir}` fetches them."
    for place in places:
        missing = place.missing(stems)
        if len(missing) < len(stems):
            raise DataError(
                f"{place.folder} lacks {', '.join(missing)} of {release.title}; copy the rest there, or {remedy}"
            )
    binary, python = (
        Place(data_dir / own, kind) for own, kind in ((release.binary_folder, True), (release.python_folder, False))
    )
    raise DataError(
        f"{release.title} is not in {data_dir}; expected {binary.folder.name}/ with {_files(binary, stems)}, or "
        f"{python.folder.name}/ with {_files(python, stems)}, there or directly in it; {remedy}"
    )


def _files(place: Place, stems: Sequence[str]) -> str:
    return ", ".join(place.file(stem).name for stem in stems)


def read(
    release: Release, place: Place, stems: Sequence[str], records: int, label: str, classes: int
) -> tuple[Pixels, Labels]:
    """Images (N, 32, 32, 3) and labels (N,) of some files with `records` records each."""
    pixels = np.empty((len(stems) * records, 32 * 32, 3), dtype=np.uint8)
    y = np.empty(len(pixels), dtype=np.int64)
    for k, stem in enumerate(stems):
        rows = slice(k * records, (k + 1) * records)
        path = place.file(stem)
        if place.binary:
            planes, y[rows] = read_binary(path, records, len(release.labels), release.labels.index(label))
        else:
            planes, y[rows] = read_python(path, records, label)
        interleave(planes, pixels[rows])
        check_labels(y[rows], classes, path)
    return pixels.reshape(-1, 32, 32, 3), y


def interleave(planes: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    """Write planes (N, 3072), channel after channel, to out (N, 1024, 3)."""
    # Blocks that fit the processor's cache make this three times as fast as one transposition.
    for start in range(0, len(planes), BLOCK):
        block = planes[start : start + BLOCK]
        for channel in range(3):
            out[start : start + BLOCK, :, channel] = block[:, channel * 1024 : (channel + 1) * 1024]


def check_labels(y: Labels, classes: int, path: Path) -> None:
    wrong = np.flatnonzero((y < 0) | (y >= classes))
    if len(wrong):
        i = int(wrong[0])
        raise DataError(
            f"{path} is damaged: record {i} has label {y[i]}, but labels are 0 to {classes - 1}; fetch the file again."
        )


def read_binary(path: Path, records: int, labels: int, which: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Planes (N, 3072), not yet in memory, and one of the label columns (N,) of a binary file."""
    width = labels + PIXELS
    expected, found = records * width, path.stat().st_size
    if found != expected:
        raise DataError(
            f"{path} has {found:,} bytes, but {expected:,} were expected ({records:,} records of {width}); "
            "the copy is incomplete or another file, so fetch it again."
        )
    rows = np.memmap(path, dtype=np.uint8, mode="r", shape=(records, width))
    return rows[:, labels:], np.array(rows[:, which])


def read_python(path: Path, records: int, label: str) -> tuple[NDArray[np.uint8], Labels]:
    """Planes (N, 3072) and labels (N,) of a python file."""
    content = unpickle(path, records * PIXELS)
    fields = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    for needed in ("data", label):
        if needed not in fields:
            raise DataError(f"{path} has no entry '{needed}'; it is no file of the python release, so fetch it again.")
    planes = fields["data"].pixels(path) if isinstance(fields["data"], _Array) else None
    if planes is None or planes.shape != (records, PIXELS):
        shape = "no array" if planes is None else f"shape {planes.shape}"
        raise DataError(f"{path}: data has {shape}, but ({records}, {PIXELS}) was expected; fetch the file again.")
    y = fields[label]
    if not isinstance(y, list) or len(y) != records or not all(type(one) is int for one in y):
        found = f"{len(y)} entries" if isinstance(y, list) else type(y).__name__
        raise DataError(
            f"{path}: {label} has {found}, but a list of {records} integers was expected; fetch the file again."
        )
    return planes, np.array(y, dtype=np.int64)


def unpickle(path: Path, least: int) -> dict[Any, Any]:
    """The dictionary in a python file, in which at least `least` bytes are pixels."""
    found = path.stat().st_size
    if found < least:
        raise DataError(
            f"{path} has {found:,} bytes, but more than {least:,} were expected; "
            "the copy is incomplete, so fetch it again."
        )
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise DataError(
            f"{path} is damaged or cut short ({error}): {found:,} bytes found, more than {least:,} expected; "
            "fetch it again."
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{path} holds a {type(content).__name__}, not a dictionary; fetch the file again.")
    return content


class _Type:
    """Stands for numpy.dtype: notes its name, ignores its state."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name = name.decode("latin1") if isinstance(name, bytes) else str(name)

    def __setstate__(self, state: Any) -> None:
        pass


class _Array:
    """Stands for numpy.ndarray: notes shape, type and bytes, so that NumPy never sees unchecked state."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self.state = tuple(state)

    def pixels(self, path: Path) -> NDArray[np.uint8]:
        """The array, which has to be two-dimensional uint8."""
        if len(self.state) == 5:
            _, shape, kind, fortran, raw = self.state
            plain = isinstance(kind, _Type) and kind.name in ("u1", "|u1") and not fortran and isinstance(raw, bytes)
            flat = isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int and n >= 0 for n in shape)
            if plain and flat and len(raw) == shape[0] * shape[1]:
                return np.frombuffer(raw, dtype=np.uint8).reshape(shape)
        raise DataError(f"{path}: data is no two-dimensional array of bytes; fetch the file again.")


def _encode(text: str, codec: str) -> bytes:
    """Stands for codecs.encode, which newer pickles of old protocol use to write bytes as text."""
    if codec != "latin1":
        raise DataError(f"asks for the codec {codec}, which no CIFAR file needs; fetch the official file again.")
    return text.encode("latin1")


def _reconstruct(*_: Any) -> _Array:
    return _Array()


class _Unpickler(pickle.Unpickler):
    """Builds dictionaries, lists, numbers, text and byte arrays; every other name in the file is refused."""

    ALLOWED: ClassVar[dict[tuple[str, str], Callable[..., Any]]] = {
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
        ("_codecs", "encode"): _encode,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise DataError(
                f"asks for {module}.{name}, which no CIFAR file needs; do not trust it, fetch the official file."
            )
        return self.ALLOWED[module, name]
