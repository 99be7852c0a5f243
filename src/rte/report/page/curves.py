"""What the journal recorded, as series over epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

POINTS = 300
"""Of a curve: more cannot be seen."""
PLACE = ("event", "epoch", "step", "seconds")
"""What of an entry says when, not what."""
FIRST = ("loss", "task", "jsd", "ecr")
LAST = ("q", "lr")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """A named curve: y at x, both (M,); `mark` is the number of its colour and dashes, by itself its place."""

    name: str
    x: Floats
    y: Floats
    mark: int | None = None


def terms(journal: list[dict[str, Any]]) -> list[Series]:
    """Every term that steps were journalled with; the objective first, q and the learning rate last."""
    steps = [entry for entry in journal if entry["event"] == "step"]
    names = list(dict.fromkeys(name for entry in steps for name in entry if name not in PLACE))
    return [series for name in sorted(names, key=_rank) if len((series := _over_epochs(journal, steps, name)).x)]


def accuracies(journal: list[dict[str, Any]]) -> list[Series]:
    """Top-1 accuracy after each evaluation, of the test set by each network and of held-out noisy labels."""
    epochs = [entry for entry in journal if entry["event"] == "epoch"]
    names = list(dict.fromkeys(name for entry in epochs for name, value in entry.items() if isinstance(value, dict)))
    names.sort(key=lambda name: (name != "test", name == "val"))
    out = []
    for name in names:
        pairs = [(entry["epoch"], entry[name].get("top1")) for entry in epochs if isinstance(entry.get(name), dict)]
        usable = [(x, y) for x, y in pairs if y is not None]
        if usable:
            x, y = np.array(usable, np.float64).T
            out.append(Series(called(name, names), x, y))
    return out


def called(name: str, names: list[str]) -> str:
    """What a network or a set of labels is called on the page."""
    if name == "test":
        return "teacher" if "student" in names else "test set"
    return "held-out noisy labels" if name == "val" else name


def _rank(name: str) -> tuple[int, str]:
    if name in FIRST:
        return FIRST.index(name), ""
    return (len(FIRST), "") if name not in LAST else (len(FIRST) + 1 + LAST.index(name), "")


def _over_epochs(journal: list[dict[str, Any]], steps: list[dict[str, Any]], name: str) -> Series:
    pairs = [(entry["step"], entry[name]) for entry in steps if isinstance(entry.get(name), int | float)]
    if not pairs:
        return Series(name, np.empty(0), np.empty(0))
    at, y = np.array(pairs, np.float64).T
    ends = [(entry["step"], entry["epoch"]) for entry in journal if entry["event"] == "epoch"]
    known = np.array([(0, 0), *ends], np.float64)
    if len(known) == 1:  # the first epoch goes on: its share is not known
        known = np.array([(0, 0), (max(at[-1], 1), 1)], np.float64)
    x = np.interp(at, known[:, 0], known[:, 1])
    pace = known[-1, 1] / max(known[-1, 0], 1)
    x = np.where(at > known[-1, 0], known[-1, 1] + (at - known[-1, 0]) * pace, x)
    return Series(name, *thinned(x, y))


def thinned(x: Floats, y: Floats, most: int = POINTS) -> tuple[Floats, Floats]:
    """At most so many points, each the mean of its neighbours."""
    if len(x) <= most:
        return x, y
    parts = np.array_split(np.arange(len(x)), most)
    return np.array([x[p].mean() for p in parts]), np.array([y[p].mean() for p in parts])
