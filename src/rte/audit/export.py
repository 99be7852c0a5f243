"""The table of an audit for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

from rte.audit.records import BLOCK, Rows, blocks, write_csv
from rte.files import write_atomic

CLEANLAB, CSV, LABEL_STUDIO = FORMATS = ("cleanlab", "csv", "labelstudio")
NAMES = {CLEANLAB: "cleanlab.csv", CSV: "suspects.csv", LABEL_STUDIO: "labelstudio.json"}
DATALAB = ("is_label_issue", "label_score", "given_label", "predicted_label")


def export(path: Path, rows: Rows, classes: Sequence[str], form: str) -> None:
    """Write the table in one of `FORMATS`.

    cleanlab: the columns of Datalab's `get_issues("label")`, a row per example in the order of the data. csv: the
    suspects alone, all columns. labelstudio: a task per suspect, with its labels as predictions to be imported.
    """
    if form == CLEANLAB:
        in_order = rows.only(rows.index.argsort())
        write_csv(
            path, ({"id": part["id"], **{name: part[name] for name in DATALAB}} for part in blocks(in_order, classes))
        )
    elif form == CSV:
        write_csv(path, blocks(rows.only(rows.is_label_issue.nonzero()[0]), classes))
    else:
        write_atomic(path, partial(_tasks, rows.only(rows.is_label_issue.nonzero()[0]), classes))


def _tasks(rows: Rows, classes: Sequence[str], file: IO[bytes]) -> None:
    file.write(b"[")
    for start in range(0, len(rows), BLOCK):
        for at in range(start, min(start + BLOCK, len(rows))):
            given, suggested = classes[int(rows.given_label[at])], classes[int(rows.predicted_label[at])]
            task = {
                "data": {
                    "image": rows.id[at],
                    "given_label": given,
                    "label_score": round(float(rows.label_score[at]), 6),
                },
                "predictions": [
                    {
                        "model_version": "rte audit",
                        "score": round(float(rows.predicted_probability[at]), 6),
                        "result": [
                            {
                                "from_name": "choice",
                                "to_name": "image",
                                "type": "choices",
                                "value": {"choices": [suggested]},
                            }
                        ],
                    }
                ],
            }
            file.write((b"," if at else b"") + b"\n" + json.dumps(task).encode())
    file.write(b"\n]\n")
