"""Files that are either complete or not there."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, cast

from rte.errors import UserError

DAMAGED = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, StopIteration,
    SyntaxError, TokenError, TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What NumPy raises for damaged files: their headers are Python literals, and their sizes may be anything."""


def write_atomic(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside the target, flush to the disk, then rename over it: a kill or a full disk leaves the old file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    failed: list[OSError] = []
    try:
        with temporary.open("wb") as file:
            write(cast(IO[bytes], _Watched(file, failed)))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    except RuntimeError:  # what torch makes of a write that fails
        if not failed:
            raise
        raise _unwritable(path, failed[0]) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    if hasattr(os, "O_DIRECTORY"):  # the rename itself must survive a power cut
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class _Watched:
    """A file that keeps the reason why a write failed, whatever its user makes of it."""

    def __init__(self, file: IO[bytes], failed: list[OSError]) -> None:
        self._file, self._failed = file, failed

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self._failed.append(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {path} ({error.strerror}); free space or choose another folder.")


def refuse_output(path: Path, option: str, *, overwrite: bool) -> None:
    """Refuse, before the work, a file that could not be written after it, or that would replace another one."""
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder; give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise UserError(f"{option} {path} is no ordinary file; choose another name.")
    if path.exists() and not overwrite:
        raise UserError(f"{option} {path} exists already; choose another name, or add --overwrite.")
    _refuse_unwritable(path.parent, f"{option} {path}")


def refuse_folder(path: Path, option: str) -> None:
    """Refuse, before the work, a new folder that could not be made after it; those above it are made, too."""
    above = next((folder for folder in path.absolute().parents if folder.exists()), path.absolute().parent)
    _refuse_unwritable(above, f"{option} {path}")


def _refuse_unwritable(folder: Path, what: str) -> None:
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise UserError(f"{what}: the folder {folder} {problem}; choose another one, or make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{what}: the folder {folder} cannot be written to; choose another one.")


def write_json(path: Path, value: Any) -> None:
    """A JSON file, indented, complete or not there."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:  # names of files that are no Unicode
        content = (json.dumps(value, indent=2) + "\n").encode()
    write_atomic(path, lambda file: file.write(content))


def read_json(path: Path) -> Any:
    """A JSON file's value."""
    if not path.exists():
        raise UserError(f"{path} is missing; is {path.parent} a run folder?")
    try:
        return parse_json(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no valid JSON ({error}); restore it or start the run anew.") from None


def parse_json(text: str) -> Any:
    """The value of a JSON text; ValueError where a key stands twice, since one of the two would be lost."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key '{next(key for key in keys if keys.count(key) > 1)}' stands twice")
    return found


def expanded(path: str | Path) -> Path:
    """The path with ~ and ~user filled in."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such user
        raise UserError(f"{path} names the home folder of nobody on this machine; write the path in full.") from None


def read_text(path: Path) -> str:
    """A text file's content."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); mend that, or give another file.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8; save it as such, or give another file.") from None


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` meanwhile, or say that `what` is in other hands. A process that dies lets go of it."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"another process is working on {what}; wait for it to end, or stop it first.") from None
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror}); choose a folder that can be written to.") from None
    try:
        yield
    finally:
        lock.release()


def unused(path: Path) -> Path:
    """`path` itself, or with the first number behind it that is still free."""
    taken = path
    number = 1
    while taken.exists():
        number += 1
        taken = path.with_name(f"{path.name}-{number}")
    return taken
