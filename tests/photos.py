"""What the tests of photograph collections are made of: small pictures that can be told apart by their colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rte.config import merge, resolve
from rte.data.types import Split
from rte.run.start import start

SMALL: dict[str, Any] = {
    "train": {"epochs": 1, "batch": 3, "device": "cpu"},
    "net": {"name": "compact"},
    "views": {"size": 32},
}


def photo(path: Path, value: int = 0, size: tuple[int, int] = (12, 9)) -> Path:
    """A picture of one colour, whatever the ending of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, 0, 0)).save(path, format="PNG")
    return path


def text(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def contents(split: Split | None) -> list[tuple[int, int]]:
    """(red of the first pixel, label) of every image."""
    assert split is not None
    images = split.images.fetch(np.arange(len(split)))
    return [(int(image[0, 0, 0]), int(label)) for image, label in zip(images, split.y, strict=True)]


def names(split: Split | None) -> list[str]:
    assert split is not None
    return [Path(split.images.label(i)).name for i in range(len(split))]


def train(preset: str, data_dir: Path, **settings: Any) -> dict[str, Any]:
    """One epoch with a preset's own data, views and method, on a small network; returns the final numbers."""
    return start(resolve(preset, merge(SMALL, settings)), data_dir / "run", data_dir=data_dir)
