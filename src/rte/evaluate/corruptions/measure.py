"""How much accuracy corruptions cost: the error on each of the 75 sets, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rte.data.types import ArrayImages, Images, Labels, Pixels
from rte.errors import DataError
from rte.evaluate.corruptions.constants import NAMES, SEVERITIES
from rte.evaluate.corruptions.generate import corrupt
from rte.evaluate.corruptions.published import official as published

BLOCK = 2000
"""Images made and predicted at a time, so that no set is ever in memory as a whole."""

Predict = Callable[[Pixels], NDArray[Any]]
"""Images (B, H, W, C) uint8 to predicted classes (B,)."""


class Step(NamedTuple):
    """One set is done: `done` of `total`, with this share of wrong predictions."""

    name: str
    severity: int
    error: float
    done: int
    total: int


def evaluate_corruptions(
    predict: Predict,
    images: Images | Pixels,
    y: Labels,
    *,
    seed: int,
    threads: int = 1,
    official: Path | None = None,
    frost: Path | None = None,
    names: Sequence[str] = NAMES,
    progress: Callable[[Step], None] | None = None,
) -> dict[str, list[float]]:
    """{corruption: error at severities 1 to 5} of predictions for test images with labels y (N,).

    The sets are made from `images`, or read from the folder `official` with the files of CIFAR-10-C. `frost`: see
    `corrupt`. `progress` is called after every set.
    """
    clean = ArrayImages(images) if isinstance(images, np.ndarray) else images
    if clean.size is None:
        raise DataError("the images differ in size; crop or resize them to one size before they are corrupted.")
    if len(clean) != len(y) or not len(y):
        raise DataError(
            f"{len(clean)} images but {len(y)} labels to measure on; give one label per image, at least one."
        )
    errors: dict[str, list[float]] = {name: [] for name in names}
    total = len(errors) * len(SEVERITIES)
    for done, (name, severity) in enumerate(((name, s) for name in errors for s in SEVERITIES), start=1):
        if official is None:
            blocks = _made(clean, name, severity, seed, frost, threads)
        else:
            blocks = _read(official, name, severity, y)
        error = _wrong(predict, blocks, y) / len(y)
        errors[name].append(error)
        if progress is not None:
            progress(Step(name, severity, error, done, total))
    return errors


def mean_corruption_error(errors: Mapping[str, Sequence[float]]) -> float:
    """mCE: the plain mean over the 15 scored corruptions and their 5 severities; others are left out."""
    missing = [name for name in NAMES if len(errors.get(name, ())) != len(SEVERITIES)]
    if missing:
        raise DataError(
            f"the mean corruption error needs 5 errors for each of 15 corruptions, but not so: {', '.join(missing)}; "
            "evaluate these too."
        )
    return float(np.mean([errors[name] for name in NAMES]))


def _made(
    images: Images, name: str, severity: int, seed: int, frost: Path | None, threads: int
) -> Iterator[tuple[slice, Pixels]]:
    for start in range(0, len(images), BLOCK):
        index = np.arange(start, min(start + BLOCK, len(images)), dtype=np.int64)
        pixels = np.asarray(images.fetch(index))
        made = corrupt(pixels, name, severity, seed=seed, index=index, frost=frost, threads=threads)
        yield slice(start, start + len(index)), made


def _read(folder: Path, name: str, severity: int, y: Labels) -> Iterator[tuple[slice, Pixels]]:
    images, labels = published(folder, name, severity)
    if not np.array_equal(labels, y):
        raise DataError(
            f"{folder / 'labels.npy'} does not hold the {len(y)} test labels that this evaluation measures on; "
            "give the files made from this very test set (CIFAR-10-C for CIFAR-10, CIFAR-100-C for CIFAR-100)."
        )
    for start in range(0, len(images), BLOCK):
        yield slice(start, start + BLOCK), images[start : start + BLOCK]


def _wrong(predict: Predict, blocks: Iterator[tuple[slice, Pixels]], y: Labels) -> int:
    wrong = 0
    for rows, images in blocks:
        predicted = np.asarray(predict(images))
        if predicted.shape != (len(images),):
            raise DataError(
                f"predictions have shape {predicted.shape} for {len(images)} images; give one class per image."
            )
        wrong += int((predicted != y[rows]).sum())
    return wrong
