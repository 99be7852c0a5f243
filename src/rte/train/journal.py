"""The journal: one JSON object per line, flushed as it is written, so that it can be read while the run goes on."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from rte.errors import UserError


class Journal:
    """Appends events to a file; `rewind` forgets what a checkpoint does not know of."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file = None if path is None else path.open("ab")

    @property
    def position(self) -> int:
        return 0 if self._file is None else self._file.tell()

    def rewind(self, position: int) -> None:
        """Cut everything after `position`: events of steps that will be done again.

        After a power cut the file may be shorter than that; then it is cut after its last whole line, and goes on.
        """
        if self._file is None or self.path is None:
            return
        if self._file.seek(0, os.SEEK_END) < position:
            written = self.path.read_bytes().rstrip(b"\0")
            position = written.rfind(b"\n") + 1
        self._file.truncate(position)
        self._file.seek(position)

    def sync(self) -> None:
        """Bring all that was written to the disk, so that a checkpoint never knows more than the journal."""
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._full(error) from None

    def write(self, event: str, **values: Any) -> None:
        if self._file is None:
            return
        line = json.dumps({"event": event, **{key: _plain(value) for key, value in values.items()}})
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._full(error) from None

    def _full(self, error: OSError) -> UserError:
        return UserError(f"cannot write {self.path} ({error.strerror}); free space, then `rte resume` the run.")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def read(path: Path, event: str | None = None) -> list[dict[str, Any]]:
    """All complete events of a journal, or those of one kind."""
    events = []
    for line in path.read_bytes().split(b"\n")[:-1]:  # what follows the last newline is still being written
        entry = json.loads(line)
        if event is None or entry["event"] == event:
            events.append(entry)
    return events
