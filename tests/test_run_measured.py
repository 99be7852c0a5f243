"""What is measured of a trained method for its page, against counting anew."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import quick

from rte.run.audit import Auditor
from rte.run.budget import PAGE, Closing
from rte.run.measured import FILE, look_back, measure, outdated
from rte.run.start import start


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    start(quick("ce", train={"epochs": 1}), folder)
    return folder


@pytest.mark.core
def test_histograms_and_counts_hold_every_example(run: Path) -> None:
    with torch.no_grad():
        auditor = Auditor.load(run)
        audit = auditor.audit()
        told = measure(auditor, audit)
    data, rows = auditor.dataset, audit.rows
    assert data.test is not None
    assert np.sum(told["confusion"]) == len(data.test) == sum(told["reliability"]["count"])
    assert data.y_true is not None
    wrong = (data.train.y != data.y_true)[rows.index]
    counts = {name: sum(told["truth"][name]["count"]) for name in ("right", "wrong")}
    assert counts == {"right": (~wrong).sum(), "wrong": wrong.sum()}
    assert sum(told["losses"]["doubted"]["count"]) == rows.is_label_issue.sum()
    middle = np.median(-np.log(rows.given_probability[wrong]))
    assert told["truth"]["wrong"]["median"] == pytest.approx(middle, rel=1e-5)
    assert told["found"]["both"] == (wrong & rows.is_label_issue).sum()


@pytest.mark.core
def test_files_older_than_the_state_are_outdated(run: Path) -> None:
    assert outdated(run, FILE)
    look_back(run, Auditor.load(run))
    assert not outdated(run, FILE)
    later = (run / FILE).stat().st_mtime + 10
    os.utime(run / "checkpoint.pt", (later, later))
    assert outdated(run, FILE)
    assert outdated(run, "audit.json")


@pytest.mark.core
def test_a_budget_keeps_time_for_the_audit_and_the_page(run: Path) -> None:
    auditor = Auditor.load(run)
    plain, audited = (Closing(auditor.method, auditor.looks, audited=each) for each in (False, True))
    plain.per_look = audited.per_look = 0.01
    plain.near = audited.near = []
    data = auditor.dataset
    assert data.test is not None
    more = PAGE + 1.05 * 0.01 * (len(data.train) + len(data.test)) * auditor.looks.viewer.looks
    assert audited(1e9, 0.1) - plain(1e9, 0.1) == pytest.approx(more)
