"""A label file in which the wrong labels are mended: columns id,label, as `rte fit --labels` takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.audit.decisions import UNSURE, Decision
from rte.audit.records import BLOCK, Rows, write_csv

DROP, RELABEL, REVIEW = WAYS = ("drop", "relabel", "review")
"""Leave suspects out; give them the suggested label; do only what people have decided."""


def doubted(rows: Rows, threshold: float | None) -> NDArray[np.bool_]:
    """The suspects: those of a score below the threshold, else those that are called wrong."""
    return rows.is_label_issue.copy() if threshold is None else rows.label_score < threshold


def mended(
    rows: Rows, way: str, decisions: dict[int, Decision], threshold: float | None = None
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The label of each row, and whether it stays in. What people have decided counts more than what is suspected."""
    label, stays = rows.given_label.copy(), np.ones(len(rows), bool)
    suspects = doubted(rows, threshold) if way != REVIEW else np.zeros(len(rows), bool)
    if way == DROP:
        stays[suspects] = False
    elif way == RELABEL:
        label[suspects] = rows.predicted_label[suspects]
    for at in np.flatnonzero(np.isin(rows.index, np.array(list(decisions), np.int64))):
        said = decisions[int(rows.index[at])]
        stays[at] = said.label >= 0
        label[at] = said.label if said.label >= 0 else rows.given_label[at]
        if said.word == UNSURE and said.label < 0:
            stays[at] = False
    return label, stays


def write_labels(
    path: Path, rows: Rows, classes: Sequence[str], label: NDArray[np.int32], stays: NDArray[np.bool_]
) -> None:
    """The file, in the order of the data."""
    order = np.argsort(rows.index)
    order = order[stays[order]]

    def blocks() -> Iterator[dict[str, list[Any]]]:
        for start in range(0, max(1, len(order)), BLOCK):
            part = order[start : start + BLOCK].tolist()
            yield {"id": [rows.id[k] for k in part], "label": [classes[int(label[k])] for k in part]}

    write_csv(path, blocks())
