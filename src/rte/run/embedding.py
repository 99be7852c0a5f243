"""What `rte embed` does: images or texts as vectors in a file, whatever is trained on them later.

FILE.npz holds labelled data, ready for `rte fit`; FILE.npy the vectors alone. FILE.json says by which model they are,
and FILE.csv which example each row of a .npy file is. What is stopped goes on where it was.
"""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rte import registry
from rte.config import Tree, validate
from rte.data import text
from rte.data._columns import SUFFIXES as TABLES
from rte.data._roles import Roles
from rte.data.arrays import read_images
from rte.data.files import FileImages, image_files
from rte.data.ids import cell
from rte.data.text import Texts, read_texts
from rte.data.types import Images, Source, Split, as_images
from rte.errors import DataError
from rte.files import expanded, write_atomic, write_json
from rte.run.features import Extractor
from rte.run.kept import Features, Tell
from rte.run.sentences import Encoder


@dataclass(frozen=True)
class Look:
    """By what examples are seen: `init` and `size` for images, `model` for texts."""

    init: str
    model: str = text.PACKAGED
    size: int | None = None
    device: str = "auto"
    threads: int = 1

    def __call__(self, source: Source, file: Path, tell: Tell | None) -> Features:
        """The vectors (N, D) of images or texts, mapped from `file`."""
        if isinstance(source, Texts):
            rows = np.arange(len(source), dtype=np.int64)
            return Encoder.open(self.model, device=self.device)(Texts(source.fetch(rows)), file, tell=tell)
        images = as_images(source)
        look = Extractor.open(self.init, channels=images.channels, size=self.size, device=self.device)
        return look(images, file, threads=self.threads, tell=tell)

    def of(self, source: Source) -> dict[str, Any]:
        """What is recorded of it."""
        return {"model": self.model} if isinstance(source, Texts) else {"init": self.init, "size": self.size}


def embed_data(data: Tree, data_dir: Path | None, look: Look, out: Path, tell: Tell | None = None) -> tuple[int, int]:
    """Labelled data as an .npz file of vectors with its labels; returns their number and length."""
    settings = {key: value for key, value in data.items() if key != "name"}
    module = registry.dataset(data["name"])
    dataset = module.load(validate(module.Config, settings, "data"), data_dir)
    source = dataset.train.images
    if not isinstance(source, Images | Texts):
        raise DataError(f"{data['name']} holds numbers already, which need no embedding; give images or texts.")
    work = out.with_name(f".{out.name}.parts")
    parts: dict[str, Split] = {"train": dataset.train} | ({"test": dataset.test} if dataset.test is not None else {})
    stored: dict[str, Any] = {"classes": np.array(dataset.classes)}
    for name, split in parts.items():
        stored[f"x_{name}"], stored[f"y_{name}"] = look(split.images, work / f"{name}.npy", tell), split.y
    if dataset.y_true is not None:
        stored["y_train_true"] = dataset.y_true
    write_atomic(out, lambda file: np.savez(file, **stored))
    n, dim = len(dataset.train), int(stored["x_train"].shape[1])
    write_json(
        out.with_suffix(".json"), {"data": data, **look.of(source), "rows": {k: len(v) for k, v in parts.items()}}
    )
    shutil.rmtree(work)
    return n, dim


def embed_examples(
    place: str, look: Look, out: Path, *, column: str | None, tell: Tell | None = None
) -> tuple[int, int]:
    """Examples without labels as a .npy file: a folder of images, an image, an .npz with an array x, or texts."""
    path = expanded(place)
    source = _examples(path, column)
    found = look(source, out, tell)
    lines = io.StringIO()
    rows = csv.writer(lines)
    rows.writerow(["row", "example"])
    rows.writerows([i, cell(source.label(i))] for i in range(len(source)))
    content = lines.getvalue().encode("utf-8", "surrogateescape")
    write_atomic(out.with_suffix(".csv"), lambda file: file.write(content))
    return int(found.shape[0]), int(found.shape[1])


def _examples(path: Path, column: str | None) -> Source:
    if column is not None or (path.is_file() and path.name.lower().endswith((*TABLES, ".txt"))):
        return read_texts(path, Roles(text=column))
    if path.suffix == ".npz":
        return read_images(path)
    return FileImages.open(image_files(path), cache_mb=0)
