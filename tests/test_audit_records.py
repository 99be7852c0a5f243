"""audit.csv and audit.json: written, read again, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from rte.audit import Audit, Rows, read
from rte.audit.records import COLUMNS, write_table
from rte.data.ids import cell, uncell
from rte.errors import UserError

NAMES = ["=cmd|' /C calc'!A0.jpg", 'a "quoted", name.png', "-2+3.jpg", "new\nline", "'quoted'", "été ☃.png", "@x", "7"]
CLASSES = ["-1", "=SUM(A1)", "<b>cat</b>"]


def rows(ids: list[str] = NAMES) -> Rows:
    n = len(ids)
    numbers, p = np.arange(n), np.linspace(0, 1, n, dtype=np.float32)
    return Rows(
        index=numbers[::-1].copy(),
        id=ids,
        given_label=(numbers % 3).astype(np.int32),
        predicted_label=((numbers + 1) % 3).astype(np.int32),
        label_score=p,
        is_label_issue=p < 0.5,
        given_probability=p,
        predicted_probability=1 - p,
        kind=(numbers % 5).astype(np.uint8),
        second_label=np.full(n, -1, np.int32),
        ambiguity=p,
        no_class_score=p,
        duplicate_of=["", *ids[:-1]],
        reviewed={0: "accept", 2: "=SUM(A1)"},
    )


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    Audit(rows(), {"classes": CLASSES, "n": len(NAMES)}).write(tmp_path)
    again = read(tmp_path)
    assert again.classes == tuple(CLASSES)
    assert again.summary["n"] == len(NAMES)
    for name in COLUMNS:
        before, after = getattr(rows(), name), getattr(again.rows, name)
        if isinstance(before, np.ndarray):
            assert before.dtype == after.dtype
            np.testing.assert_allclose(before.astype(float), after.astype(float), rtol=1e-5)
        else:
            assert before == after


def test_names_that_are_no_unicode_survive(tmp_path: Path) -> None:
    strange = [f"{k}-\udcff.jpg" for k in range(8)]
    Audit(rows(strange), {"classes": CLASSES}).write(tmp_path)
    assert read(tmp_path).rows.id == strange


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    write_table(tmp_path / "audit.csv", rows(), CLASSES)
    with (tmp_path / "audit.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert lines[0] == list(COLUMNS)
    for line in lines[1:]:
        for value in line:
            assert not value.startswith(("=", "+", "@", "\t", "\r"))
            assert value[:1] != "-" or value == "-1"


@pytest.mark.parametrize("text", ["", "'", "''=", "=1", " =1", "-5", "-x", "＝1", "'=1", "\ta", "plain", "+5"])
def test_a_cell_gives_its_text_back(text: str) -> None:
    assert uncell(cell(text)) == text
    assert not cell(text).lstrip(" ").startswith(("=", "+", "@", "\t", "＝"))


def test_parquet_has_the_same_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "audit.parquet", rows(), CLASSES)
    table = parquet.read_table(tmp_path / "audit.parquet")
    assert table.column_names == list(COLUMNS)
    assert table["id"].to_pylist() == NAMES
    assert table["given_label"].to_pylist()[:3] == CLASSES


def test_a_damaged_table_is_named_by_its_line(tmp_path: Path) -> None:
    Audit(rows(), {"classes": CLASSES}).write(tmp_path)
    text = (tmp_path / "audit.csv").read_text(encoding="utf-8")
    (tmp_path / "audit.csv").write_text(text.replace("True", "True,x,", 1), encoding="utf-8")
    with pytest.raises(UserError, match="line 2 of"):
        read(tmp_path)


def test_a_folder_without_audit_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="rte audit"):
        read(tmp_path)
