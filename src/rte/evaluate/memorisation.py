"""What became of the wrongly labelled training examples: memorised, or predicted as what they really are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.evaluate.inputs import paired


class LossSplit(NamedTuple):
    """Losses against the given labels: of the examples whose label is right, and of those whose label is wrong."""

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


def memorised(predicted: ArrayLike, y: ArrayLike, y_true: ArrayLike) -> float | None:
    """Share of the wrongly labelled examples that are predicted as their wrong label; None if no label is wrong."""
    predicted, y, y_true = paired(predicted, y, y_true, "predictions")
    return _share(predicted == y, y != y_true)


def recovered(predicted: ArrayLike, y: ArrayLike, y_true: ArrayLike) -> float | None:
    """Share of the wrongly labelled examples that are predicted as their true label; None if no label is wrong."""
    predicted, y, y_true = paired(predicted, y, y_true, "predictions")
    return _share(predicted == y_true, y != y_true)


def memorisation(predicted: ArrayLike, y: ArrayLike, y_true: ArrayLike) -> dict[str, float | int | None]:
    """`wrong` labels in number, and the shares of them that were memorised and recovered."""
    _, given, true = paired(predicted, y, y_true, "predictions")
    return {
        "wrong": int((given != true).sum()),
        "memorised": memorised(predicted, y, y_true),
        "recovered": recovered(predicted, y, y_true),
    }


def loss_split(losses: ArrayLike, y: ArrayLike, y_true: ArrayLike) -> LossSplit:
    """Losses (N,) against the given labels, split by whether that label is right."""
    values, y, y_true = paired(losses, y, y_true, "losses")
    values = values.astype(np.float64)
    return LossSplit(values[y == y_true], values[y != y_true])


def histograms(losses: Mapping[str, NDArray[np.floating]], bins: int = 60, top: float = 12.0) -> dict[str, Any]:
    """Counts of the losses of each group over 0..top, the last bin holding all above, and the medians."""
    edges = np.linspace(0.0, top, bins + 1)
    out: dict[str, Any] = {"edges": edges.tolist()}
    for name, part in losses.items():
        count = np.histogram(np.clip(part, 0.0, np.nextafter(top, 0.0)), edges)[0]
        out[name] = {"count": count.tolist(), "median": float(np.median(part)) if len(part) else None}
    return out


def _share(hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> float | None:
    return float(hits[among].mean()) if among.any() else None
