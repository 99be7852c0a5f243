"""The audit of labels of which the probabilities are known: for programs, without files."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte.audit.evidence import gather
from rte.audit.judge import judge
from rte.audit.noise import estimate
from rte.audit.records import KINDS, LABELS, Rows
from rte.errors import DataError

LEFT_OUT = ("id", "duplicate_of", "reviewed")
"""Columns of audit.csv that examples in memory do not have."""


def suspects(
    probabilities: NDArray[np.float64],
    y: NDArray[Any],
    classes: NDArray[Any],
    seen: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None,
) -> dict[str, NDArray[Any]]:
    """The columns of audit.csv, most suspicious label first, from probabilities (N, K) and given labels (N,).

    `seen`: which rows training had, and its margins of them (n, 2, parts of the run).
    """
    if len(y) != len(probabilities):
        raise DataError(f"there are {len(probabilities)} examples but {len(y)} labels; give one label for each.")
    places = {value: k for k, value in enumerate(classes.tolist())}
    if strange := [value for value in y.tolist() if value not in places]:
        raise DataError(f"the label {strange[0]!r} is none of those of fit; leave it out.")
    codes = np.array([places[value] for value in y.tolist()], np.int64)
    logits = torch.from_numpy(np.log(np.maximum(probabilities, 1e-30)))
    evidence = gather(codes, [logits], len(classes))
    if seen is not None:
        evidence = evidence.remembering(seen[0], torch.from_numpy(seen[1]))
    rows = judge(evidence, estimate(evidence).rate, str)
    columns = {field.name: getattr(rows, field.name) for field in fields(Rows) if field.name not in LEFT_OUT}
    columns |= {name: classes[columns[name]] for name in LABELS}
    return columns | {"kind": np.array(KINDS)[rows.kind]}
