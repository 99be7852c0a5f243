"""Accuracy and likelihood of logits (N, K) against labels (N,), in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.errors import DataError, TrainingError
from rte.evaluate.calibration import binned
from rte.evaluate.inputs import rows_and_labels

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """How good predictions are: shares right among the first one and five, mean -log p_y, calibration error."""

    top1: float
    top5: float
    nll: float
    ece: float


def score(logits: ArrayLike, y: ArrayLike) -> dict[str, float]:
    """All of `Scores` by name."""
    table, labels = _usable(logits, y)
    rank = ranks(table, labels)
    total = log_sum_exp(table)
    confidence = np.exp(table.max(axis=1) - total)
    return asdict(
        Scores(
            top1=float((rank < 1).mean()),
            top5=float((rank < 5).mean()),
            nll=float((total - _at_label(table, labels)).mean()),
            ece=binned(confidence, rank < 1).error,
        )
    )


def top_k(logits: ArrayLike, y: ArrayLike, k: int = 1) -> float:
    """Share of the examples whose label is among the k highest classes; with k >= K it is 1."""
    if k < 1:
        raise DataError(f"top-{k} accuracy counts no class; give k of at least 1.")
    return float((ranks(*_usable(logits, y)) < k).mean())


def nll(logits: ArrayLike, y: ArrayLike) -> float:
    """Mean negative log-likelihood -log softmax(logits)[y]."""
    table, labels = _usable(logits, y)
    return float((log_sum_exp(table) - _at_label(table, labels)).mean())


def ranks(logits: NDArray[np.floating], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many classes come before the label (N,); of equal logits the lower class comes first, as in argmax."""
    own = logits[np.arange(len(y)), y][:, None]
    before = np.arange(logits.shape[1]) < y[:, None]
    ahead: NDArray[np.int64] = ((logits > own) | ((logits == own) & before)).sum(axis=1)
    return ahead


def log_sum_exp(logits: NDArray[np.floating]) -> Floats:
    """log sum_k exp(logits[:, k]), (N,), without overflow."""
    top = logits.max(axis=1).astype(np.float64)
    rest = logits - top[:, None]
    total: Floats = top + np.log(np.exp(rest, out=rest).sum(axis=1))
    return total


def summarise(history: Sequence[float]) -> dict[str, float]:
    """The three ways to quote a run: `last`, `last5` (mean of the last five), `best` (which peeks at the test set)."""
    if not history:
        raise DataError("there are no evaluations to summarise; evaluate at least once.")
    return {"last": float(history[-1]), "last5": last5(history), "best": float(max(history))}


def last5(values: Sequence[float]) -> float:
    """Mean of the last five values, or of all if there are fewer."""
    return float(np.mean(values[-5:]))


def _at_label(logits: NDArray[np.floating], y: NDArray[np.int64]) -> Floats:
    return logits[np.arange(len(y)), y].astype(np.float64)


def _usable(logits: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
    """-inf is a class ruled out; NaN, +inf or nothing but -inf is a network that has broken down."""
    table, labels = rows_and_labels(logits, y, "logits")
    broken = ~np.isfinite(table.max(axis=1))  # the maximum of a row with NaN is NaN
    if broken.any():
        i = int(np.flatnonzero(broken)[0])
        raise TrainingError(
            f"the network's outputs for example {i} are not finite; lower the learning rate or clip gradients."
        )
    return table, labels
