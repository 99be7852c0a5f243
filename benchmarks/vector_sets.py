"""The sets of `benchmarks/vectors.py`: vectors and tables with right labels, and the wrong labels they are given.

Sets are read from a folder: letter.csv.gz, and banking77.npz and cifar10.npz, which hold x_train, y_train, x_test and
y_test (embeddings, made once: docs/vectors.md says how); cifar10.npz also `worse`, labels that people gave. What ships
in scikit-learn needs no folder. A set that is not there is left out.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from rte.noise.matrix import NoiseModel

Array = NDArray[Any]
TABLES = {"digits": load_digits, "breast_cancer": load_breast_cancer}
"""Tables that ship in scikit-learn; three tenths of each are for testing, the same for every seed."""
FILES = ("banking77", "letter", "cifar10")
LETTERS = 16_000
"""Rows of letter that are trained on, by its authors."""


@dataclass(frozen=True)
class Set:
    """Training vectors (N, D) with right labels, test vectors with theirs; labels that people gave, if any."""

    name: str
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    people: Array | None = None

    @property
    def classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def noises(self) -> tuple[str, ...]:
        """What its labels are spoilt with."""
        if self.name == "cifar10":
            return "clean", "sym 40", "sym 80", "patrini 40", "people"
        return "clean", "sym 20", "sym 40"

    def labels(self, noise: str, seed: int) -> Array:
        """Given labels (N,)."""
        kind, _, percent = noise.partition(" ")
        if kind == "clean":
            return self.y
        if kind == "people":
            assert self.people is not None
            return self.people
        ratio = float(percent) / 100
        model = NoiseModel.patrini_cifar10(ratio) if kind == "patrini" else NoiseModel.symmetric(self.classes, ratio)
        return model.sample(self.y, seed=seed)


def sets(folder: Path | None) -> Iterator[Set]:
    """Those that are there, in the order of the table."""
    for name in FILES:
        found = None if folder is None else _read(folder, name)
        if found is not None:
            yield found
    for name, load in TABLES.items():
        x, y = load(return_X_y=True)
        x, x_test, y, y_test = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
        yield Set(name, x.astype(np.float32), y, x_test.astype(np.float32), y_test)


def _read(folder: Path, name: str) -> Set | None:
    file = folder / ("letter.csv.gz" if name == "letter" else f"{name}.npz")
    if not file.exists():
        return None
    if name == "letter":
        with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        x = np.array([[float(row[key]) for key in row if key != "letter"] for row in rows], np.float32)
        y = np.unique([row["letter"] for row in rows], return_inverse=True)[1].astype(np.int64)
        return Set(name, x[:LETTERS], y[:LETTERS], x[LETTERS:], y[LETTERS:])
    with np.load(file, allow_pickle=False) as stored:
        people = stored["worse"].astype(np.int64) if "worse" in stored else None
        y, y_test = stored["y_train"].astype(np.int64), stored["y_test"].astype(np.int64)
        return Set(name, stored["x_train"], y, stored["x_test"], y_test, people)
