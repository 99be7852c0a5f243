"""Trusted examples: a few whose labels are known to be right, and which noise is not injected into."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Dataset
from rte.errors import ConfigError, DataError
from rte.files import expanded
from rte.rng import generator

Rows = NDArray[np.int64]


def trusted_rows(dataset: Dataset, wanted: int | str, *, injected: bool, seed: int) -> Rows:
    """Rows of the training set that are trusted, sorted: so many, drawn evenly over classes, or those a file names.

    A number needs labels that are known to be right: `y_true`, or where noise is `injected` the labels as released. A
    text file names one example per line, by its row number or, for files, by its path.
    """
    if isinstance(wanted, str):
        return _of_file(dataset, expanded(wanted))
    if wanted == 0:
        return np.zeros(0, np.int64)
    if dataset.y_true is None and not injected:
        raise ConfigError(
            f"train.trusted = {wanted}: nobody knows which labels of {dataset.name} are right; name a text file with "
            "the examples you have checked, one row number or file name per line."
        )
    truth = dataset.train.y if dataset.y_true is None else dataset.y_true
    if wanted > len(truth):
        raise ConfigError(f"train.trusted = {wanted} exceeds the {len(truth)} training examples; give fewer.")
    order = generator(seed, "trusted").permutation(len(truth))
    turn = np.empty(len(truth), np.int64)  # how many of its class come before an example in that order
    for k in range(len(dataset.classes)):
        members = order[truth[order] == k]
        turn[members] = np.arange(len(members))
    rows: Rows = np.sort(order[np.argsort(turn[order], kind="stable")][:wanted])
    return rows


def _of_file(dataset: Dataset, path: Path) -> Rows:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"train.trusted = {path} cannot be read ({error}); give a text file.") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise ConfigError(f"train.trusted: {path} names no example; write one row number or file name per line.")
    n = len(dataset.train)
    if all(name.isdecimal() for name in names):
        rows = np.unique(np.array([int(name) for name in names], np.int64))
        if rows[-1] >= n:
            raise DataError(f"{path} names row {rows[-1]}, but the training set has rows 0 to {n - 1}.")
        return rows
    known = {dataset.train.images.label(i): i for i in range(n)}
    missing = [name for name in names if name not in known]
    if missing:
        raise DataError(
            f"{path} names {missing[0]}, which is no training example of {dataset.name}; write names as "
            f"{next(iter(known))}."
        )
    return np.unique(np.array([known[name] for name in names], np.int64))
