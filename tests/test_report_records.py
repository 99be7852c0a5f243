"""The results on the page of a method are those in results/."""

from __future__ import annotations

from pathlib import Path

from records import NOTHING, RESULTS, by_the_clock, in_the_tables, records

from rte.files import read_json, write_json


def test_runs_by_the_clock_are_those_of_the_method(tmp_path: Path) -> None:
    row = {"noise": "40 % symmetric", "minutes": 5.0, "method": "elr", "mean": 81.46, "spread": None, "last": [81.46]}
    other = {**row, "method": "gce", "mean": 83.94, "spread": 0.21, "last": [83.8, 84.1]}
    write_json(tmp_path / "frontier.json", {"rows": [row, other]})
    assert "| 40 % symmetric | 5 | 81.5 | 1 |" in by_the_clock("elr", tmp_path)
    assert "| 40 % symmetric | 5 | 83.9 ± 0.2 | 2 |" in by_the_clock("gce", tmp_path)
    assert "83.9" not in by_the_clock("elr", tmp_path)


def test_rows_of_the_paper_s_tables_are_those_of_the_method(tmp_path: Path) -> None:
    accuracy = {"mean": 74.2, "spread": None, "values": [74.2]}
    cells = [{"row": row, "column": "CIFAR-10 0 %", "ours": {"accuracy": accuracy}} for row in ("CE", "RTE")]
    write_json(tmp_path / "main.json", {"cells": cells})
    assert in_the_tables("ce", tmp_path).count("74.2") == 1
    assert "| CE | CIFAR-10 0 % | 74.2 | 1 |" in in_the_tables("ce", tmp_path)
    assert in_the_tables("gce", tmp_path) == ""


def test_a_method_without_runs_says_so(tmp_path: Path) -> None:
    assert records("pencil", tmp_path) == NOTHING


def test_committed_results_reach_the_pages() -> None:
    clock = [row for row in read_json(RESULTS / "frontier.json")["rows"] if row["method"] == "elr"]
    assert len(clock) > 1
    assert all(f"| {row['mean']:.1f}" in records("elr") for row in clock)
    assert "Accuracy under symmetric noise" in records("rte")
