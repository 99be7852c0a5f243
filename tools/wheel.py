"""What a wheel and an sdist must be: `python tools/wheel.py dist`, after `make wheel` has built them."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

LARGEST = 1_000_000
"""Bytes of either."""
STRANGE = (".pt", ".npz", ".safetensors", ".ipynb", ".pyc")
"""Endings of files that have no place in them."""


def listed(path: Path) -> list[str]:
    """The names of the files in a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as source:
        return source.getnames()


def problems(folder: Path) -> list[str]:
    """What is wrong with the files in a folder, a sentence each."""
    wheels, sources = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    found = [] if len(wheels) == len(sources) == 1 else [f"{folder} holds not one wheel and one sdist"]
    for path in (*wheels, *sources):
        names = listed(path)
        size = path.stat().st_size
        found += [f"{path.name} has {size:,} bytes"] if size > LARGEST else []
        found += [f"{path.name} holds {name}" for name in names if name.endswith(STRANGE)]
        found += [] if any(name.endswith("rte/py.typed") for name in names) else [f"{path.name} lacks py.typed"]
        found += [] if any(name.endswith("presets/laptop.toml") for name in names) else [f"{path.name} lacks presets"]
    return found


if __name__ == "__main__":
    for sentence in (wrong := problems(Path(sys.argv[1]))):
        print(sentence)
    sys.exit(1 if wrong else 0)
