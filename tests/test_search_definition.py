"""The folder of a search: its settings, its ledger, its states."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import quick

from rte.errors import CheckpointError, ConfigError
from rte.files import write_json
from rte.search.definition import (
    Search,
    SearchConfig,
    append_record,
    discard_before,
    place,
    read_plan,
    read_records,
    write_plan,
)
from rte.search.population import Record
from rte.search.space import declared


def plan(interval: int = 1, **settings: object) -> Search:
    config = quick("rte", **settings)
    return Search.make(config, SearchConfig(population=4, interval=interval), declared("rte"), None)


def record(member: int, score: float | None = 0.1 + 0.2) -> Record:
    return Record(member, 0, 1, member, {"train.lr": 1 / 3, "method.views": 4}, score, place(member, 1, "ab"), 1.5)


def test_a_part_of_the_noisy_data_is_held_out_and_every_decision_is_scored() -> None:
    assert plan().config.train.holdout == 0.1
    assert plan(train={"holdout": 0.25}).config.train.holdout == 0.25
    assert plan(4, train={"evaluate_every": 6, "epochs": 20}).config.train.evaluate_every == 2
    assert plan(2, train={"evaluate_every": 1, "epochs": 20}).config.train.evaluate_every == 1


def test_an_interval_without_a_decision_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--interval 2 leaves no decision within train\.epochs = 2"):
        plan(2)


def test_paths_are_the_same_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images.npz").write_bytes(b"")
    here = plan(data={"name": "arrays", "path": "images.npz"}).config.data
    assert here.model_dump()["path"] == str(tmp_path / "images.npz")
    elsewhere = plan(data={"name": "arrays", "path": "in-the-data-folder.npz"}).config.data
    assert elsewhere.model_dump()["path"] == "in-the-data-folder.npz"


def test_plan_round_trip(tmp_path: Path) -> None:
    made = Search.make(quick("elr"), SearchConfig(population=3, interval=1), declared("elr"), tmp_path)
    write_plan(tmp_path, made)
    assert read_plan(tmp_path) == made
    with pytest.raises(CheckpointError, match=r"no folder of a search .*tune\.json"):
        read_plan(tmp_path / "none")


def test_ledger_keeps_every_number_and_drops_half_a_line(tmp_path: Path) -> None:
    assert read_records(tmp_path) == []
    records = [record(0), record(1, None), record(2)]
    for each in records:
        append_record(tmp_path, each)
    assert read_records(tmp_path) == records
    ledger = tmp_path / "population.jsonl"
    whole = ledger.read_bytes()
    for cut in range(1, len(whole) - whole.rindex(b"\n", 0, -1) - 1):
        ledger.write_bytes(whole[:-cut])
        assert read_records(tmp_path) == records[:2]
        append_record(tmp_path, records[2])
        assert ledger.read_bytes() == whole
    ledger.write_bytes(whole[:10])
    assert read_records(tmp_path) == []
    assert ledger.read_bytes() == b""
    ledger.write_bytes(b"[]\n")
    with pytest.raises(CheckpointError, match="damaged"):
        read_records(tmp_path)


def test_only_states_that_may_be_needed_are_kept(tmp_path: Path) -> None:
    kept = [place(0, 4, "a1"), place(1, 4, "b2"), place(1, 12, "b2")]
    for each in [place(0, 2, "a1"), place(1, 2, "b2"), *kept]:
        (tmp_path / each).mkdir(parents=True)
        write_json(tmp_path / each / "result.json", {})
    discard_before(tmp_path, 4)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("members/*/*")) == sorted(kept)
    discard_before(tmp_path / "nowhere", 4)
