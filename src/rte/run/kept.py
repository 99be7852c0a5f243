"""Features that were taken once and are kept in a file: FILE.npy, with FILE.json that says what they are of.

While they are taken the two are FILE.part.npy and FILE.part.json, and who is stopped goes on where the latter says.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Source
from rte.errors import CheckpointError, UserError
from rte.files import DAMAGED, write_json

Features = NDArray[Any]
"""(N, D) float32, or float16 where there are many, in memory or mapped from a file."""
Tell = Callable[[int, int], None]
"""Is told how many examples are done, and how many there are."""
Blocks = Callable[[int], Iterator[tuple[int, NDArray[np.float32]]]]
"""(position, features) of a few examples after the other, from a position on."""

SAVED = 10.0
"""Seconds after which what is done is safe."""
SINGLE = 2**31
"""Bytes up to which features are kept in single precision, larger sets in half: a run reads them in every epoch."""
SOME = 16
"""Examples whose content is looked at to tell whether they are the same as before."""


def taken(
    blocks: Blocks, shape: tuple[int, int], file: Path | None, key: Mapping[str, Any], tell: Tell | None
) -> Features:
    """Features of that shape (N, D): in memory, or mapped from `file`.

    They are taken now, gone on with, or there already, if the file says the same `key`.
    """
    n, width = shape
    if file is None:
        found = np.empty(shape, np.float32)
        for at, block in blocks(0):
            found[at : at + len(block)] = block
            _told(tell, at + len(block), n)
        return found
    kind = "float16" if 4 * n * width > SINGLE else "float32"
    whole = {**key, "dtype": kind, "shape": [n, width]}
    if record(file) != whole:
        with _alone(file):  # another process may have taken them meanwhile
            if record(file) != whole:
                _take(blocks, file, whole, tell)
    mapped: Features = _mapped(file, "r")
    return mapped


def there(file: Path, key: Mapping[str, Any]) -> Features | None:
    """The features in a file, if it says all that `key` says; None if it is not there or says something else."""
    said = record(file)
    if said is None or any(said.get(name) != value for name, value in key.items()):
        return None
    mapped: Features = _mapped(file, "r")
    return mapped


def fingerprint(source: Source) -> str:
    """A short name for these examples: what they are called, such as their paths, and what some of them show."""
    digest = hashlib.sha256()
    for i in range(len(source)):
        digest.update(source.label(i).encode(errors="surrogateescape") + b"\0")
    for i in np.linspace(0, len(source) - 1, min(len(source), SOME)).astype(np.int64):
        digest.update(np.ascontiguousarray(source.fetch(np.array([i]))[0]).tobytes())
    return digest.hexdigest()[:16]


def record(file: Path) -> dict[str, Any] | None:
    """What a file of features says of itself; None where it is not there or damaged."""
    try:
        found = json.loads(beside(file).read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def beside(file: Path) -> Path:
    """The file that says what the features are of."""
    return file.with_suffix(".json")


def _take(blocks: Blocks, file: Path, key: dict[str, Any], tell: Tell | None) -> None:
    n, part = key["shape"][0], file.with_name(f"{file.stem}.part{file.suffix}")
    before = record(part) or {}
    first = int(before.pop("done", 0))
    first = first if before == key else 0
    out = _mapped(part, "r+") if first else _created(part, key)
    saved = time.monotonic()
    for at, block in blocks(first):
        end = at + len(block)
        out[at:end] = block
        if end == n or time.monotonic() - saved > SAVED:
            out.flush()
            write_json(beside(part), {**key, "done": end})
            saved = time.monotonic()
        _told(tell, end, n)
    del out
    part.replace(file)
    write_json(beside(file), key)
    beside(part).unlink()


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Wait for other processes that take the same features."""
    from filelock import FileLock

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file.with_name(f".{file.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise _unwritable(file, error) from None
    with lock:
        yield


def _unwritable(file: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {file} ({error.strerror}); free space or choose another folder.")


def _told(tell: Tell | None, done: int, total: int) -> None:
    if tell is not None:
        tell(done, total)


def _created(file: Path, key: dict[str, Any]) -> Any:
    """A new file for that many features; the disk has room for all of them, or it is refused now."""
    try:
        beside(file).unlink(missing_ok=True)
        out: Any = np.lib.format.open_memmap(file, "w+", np.dtype(key["dtype"]), tuple(key["shape"]))
        with file.open("r+b") as plain:
            _reserve(plain.fileno(), file.stat().st_size)
    except OSError as error:
        with suppress(OSError):
            file.unlink()
        raise _unwritable(file, error) from None
    return out


def _reserve(descriptor: int, size: int) -> None:
    """Take the room on the disk: writing to a mapped file of which there is none would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)


def _mapped(file: Path, mode: Any) -> Any:
    try:
        return np.load(file, mmap_mode=mode, allow_pickle=False)
    except DAMAGED as error:
        raise CheckpointError(f"{file} cannot be read ({error}); delete it, and it is made again.") from None
