"""Numbers beyond accuracy: taken from a run's last checkpoint after training, kept beside it in measures.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rte.files import read_json, write_json
from rte.run.folder import reopen

FILE = "measures.json"
Say = Callable[[str, float], None]
"""Told what is measured, and the share of it that is done."""


def taken(folder: Path) -> dict[str, Any]:
    """What has been measured so far."""
    return dict(read_json(folder / FILE)) if (folder / FILE).is_file() else {}


def measure(folder: Path, wanted: Iterable[str], *, data_dir: Path | None, say: Say) -> dict[str, Any]:
    """Measure what is wanted and not there yet; each number is on the disk as soon as it is known."""
    found = taken(folder)
    missing = [name for name in sorted(wanted) if name not in found]
    if not missing:
        return found
    method, examiner = reopen(folder, data_dir=data_dir, which="checkpoint")
    for name in missing:
        say(name, 0.0)
        if name == "mce":
            found[name] = examiner.corruptions(method, progress=lambda step: say("mce", step.done / step.total))
        elif name == "reliability":
            found[name] = examiner.reliability(method)
        else:
            found[name] = examiner.losses(method)
        write_json(folder / FILE, found)
    return found
