"""Files that are either complete or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from rte.errors import UserError


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


def write_json(path: Path, value: Any) -> None:
    """A JSON file, indented, complete or not there."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_atomic(path, lambda file: file.write(text.encode()))


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


def unused(path: Path) -> Path:
    """`path` itself, or with the first number behind it that is still free."""
    taken = path
    number = 1
    while taken.exists():
        number += 1
        taken = path.with_name(f"{path.name}-{number}")
    return taken
