"""`rte reproduce` as a user calls it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rte.cli import main
from rte.reproduce.tables import TABLES

DIGITS = [
    text
    for each in ("data.name=digits", "train.epochs=1", "train.batch=256", "views.pad=1", "net.name=compact-8")
    for text in ("--set", each)
]


def rte(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["rte", "reproduce", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as stop:
        main()
    out = capsys.readouterr()
    return int(stop.value.code or 0), out.out, out.err


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RTE_DATA", raising=False)


def test_a_dry_run_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = rte(monkeypatch, capsys, "confusion", "--size", "paper", "--dry-run", "--seeds", "2")
    assert code == 0
    assert "12 runs, 12 of them still to do" in out
    assert "V100 hours" in out
    assert out.count("to do") == 13
    assert not list(tmp_path.iterdir())


def test_the_list_names_every_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = rte(monkeypatch, capsys)
    assert all(f" {table.name} " in out for table in TABLES)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["patrini"], "cifar10 needs a data folder"),
        (["patrini", "--data-dir", "."], "data_batch_1"),
        (["mian"], "there is no table 'mian'; did you mean 'main'?"),
        (["food101n"], "'food101n' exists at size paper only"),
        (["patrini", "--shard", "3/2"], "write it as i/n"),
        (["patrini", "--size", "paper", *DIGITS], "pass --yes to start it"),
        (["patrini", "--size", "small"], "neither paper nor laptop"),
    ],
)
def test_mistakes(
    arguments: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = rte(monkeypatch, capsys, *arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert part in errors
    assert not list(tmp_path.iterdir())


def test_parts_on_several_machines_make_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two parts one after another, and a summary that a second call does not change."""
    few = ["patrini", "--only", "GCE", "--only", "CE", *DIGITS]
    rte(monkeypatch, capsys, *few, "--shard", "2/2")
    path = tmp_path / "runs" / "reproduce" / "results" / "patrini.json"
    assert json.loads(path.read_text())["not_run"] == ["CE, 40 %"]
    rte(monkeypatch, capsys, *few, "--shard", "1/2")
    whole = path.read_bytes()
    tree = json.loads(whole)
    assert tree["not_run"] == []
    assert [cell["ours"]["accuracy"]["mean"] > 0 for cell in tree["cells"]] == [True, True]
    assert tree["cells"][1]["paper"] == {"accuracy": 64.79}
    path.unlink()
    assert rte(monkeypatch, capsys, *few, "--summarise")[0] == 0
    assert path.read_bytes() == whole
