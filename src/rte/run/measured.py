"""measured.json of a run folder: what a page shows of a trained method beside its final numbers and its audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from rte.audit.records import Audit
from rte.evaluate.flags import found
from rte.evaluate.memorisation import histograms
from rte.files import write_json
from rte.run.audit import Auditor, data_root
from rte.run.folder import STATES, data_folder

FILE = "measured.json"
BINS, TOP = 40, 8.0
"""Of the histograms of losses."""


def measure(auditor: Auditor, audit: Audit) -> dict[str, Any]:
    """Reliability and confusions on the test set; losses of believed and doubted labels, and what truth says of them.

    The losses, -log p(given label), come from the audit, so that the training set is not looked at again.
    """
    rows = audit.rows
    losses = -np.log(np.maximum(rows.given_probability.astype(np.float64), 1e-12))
    doubted = rows.is_label_issue
    out = auditor.looks.findings(auditor.method)
    out["losses"] = histograms({"believed": losses[~doubted], "doubted": losses[doubted]}, BINS, TOP)
    wrong = auditor.looks.truth_of(rows.index)
    if wrong is not None:
        out["truth"] = histograms({"right": losses[~wrong], "wrong": losses[wrong]}, BINS, TOP)
        out["found"] = found(rows.label_score, doubted, wrong)
    return out


def look_back(folder: Path, auditor: Auditor, data_dir: Path | None = None) -> Audit:
    """Audit a trained method and measure it, and leave audit.csv, audit.json and measured.json in its folder."""
    with torch.no_grad():
        audit = auditor.audit(data_root(auditor.config, data_folder(folder, data_dir)))
        audit.write(folder)
        write_json(folder / FILE, measure(auditor, audit))
    return audit


def outdated(folder: Path, name: str) -> bool:
    """Whether a file that is made from the trained state is missing, or older than that state."""
    states = [path for state in STATES if (path := folder / f"{state}.pt").is_file()]
    file = folder / name
    return not file.is_file() or any(path.stat().st_mtime > file.stat().st_mtime for path in states)
