"""CIFAR-10 (Krizhevsky, 2009): 50,000 + 10,000 colour images of 32 x 32 pixels in 10 classes."""

from __future__ import annotations

from pathlib import Path

from rte.data._cifar import Release, load_release
from rte.data.types import Dataset
from rte.settings import Settings

SUMMARY = "CIFAR-10, 32 x 32 colour, 10 classes, 50,000 + 10,000 images, official binary or python release"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RELEASE = Release(
    title="CIFAR-10",
    name="cifar10",
    binary_folder="cifar-10-batches-bin",
    python_folder="cifar-10-batches-py",
    train=tuple(f"data_batch_{k}" for k in range(1, 6)),
    test=("test_batch",),
    labels=("labels",),
    train_records=10000,
    test_records=10000,
)


class Config(Settings):
    """CIFAR-10 has no settings."""


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """CIFAR-10 in official order: data_batch_1 to 5, then test_batch."""
    return load_release(RELEASE, data_dir, label="labels", classes=CLASSES, name="cifar10")
