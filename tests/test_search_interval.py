"""What a worker does, done here without Ray: intervals that follow each other are one run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import quick

from rte.files import read_json, write_json
from rte.run.build import load_dataset, prepare
from rte.run.start import start
from rte.search.definition import Search, SearchConfig, read_plan, write_plan
from rte.search.interval import _prepared, work
from rte.search.space import applied, declared
from rte.train import checkpoint, journal

VALUES = {"train.lr": 0.03, "train.weight_decay": 1e-4, "method.weight": 2.0, "method.beta": 0.6}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    _prepared.cache_clear()
    plan = Search.make(quick("elr"), SearchConfig(population=2, interval=1), declared("elr"), None)
    write_plan(tmp_path, plan)
    write_json(tmp_path / "noise.json", prepare(plan.config, load_dataset(plan.config, None)).manifest.tree())
    yield tmp_path
    _prepared.cache_clear()


def task(folder: Path, until: int, source: str | None, place: str, **rest: Any) -> dict[str, Any]:
    member = {"member": 0, "parent": 0, "values": VALUES, "cpus": 1.0, "device": "cpu"}
    return {"folder": str(folder), "until": until, "source": source, "place": place, **member, **rest}


def test_two_intervals_are_the_run_with_these_constants(folder: Path) -> None:
    first = work(task(folder, 1, None, "members/a"))
    second = work(task(folder, 2, "members/a", "members/b"))
    assert torch.get_num_threads() == 1
    straight = start(applied(read_plan(folder).config, VALUES), folder / "straight")
    assert second["score"] == straight["val"]["last"]
    noted = journal.read(folder / "straight" / "journal.jsonl", "epoch")[0]["val"]["top1"]
    assert first["score"] == pytest.approx(noted, abs=1e-7)
    assert first["seconds"] > 0
    for name in ("checkpoint", "selected"):
        mine = checkpoint.load(folder / "members/b" / f"{name}.pt")["method"]
        whole = checkpoint.load(folder / "straight" / f"{name}.pt")["method"]
        assert all(torch.equal(mine[key], whole[key]) for key in whole)
    result = read_json(folder / "members/b/result.json")
    assert result["test"] == straight["test"]
    assert result["memorisation"] == straight["memorisation"]
    assert not (folder / "members/a/result.json").exists()
    events = journal.read(folder / "members/b/journal.jsonl")
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [1, 2]
    assert [event["values"] for event in events if event["event"] == "inherit"] == [VALUES, VALUES]


def test_an_heir_goes_on_from_the_state_of_another_with_its_own_values(folder: Path) -> None:
    work(task(folder, 1, None, "members/a"))
    standing = {**VALUES, "train.lr": 1e-9, "train.weight_decay": 0.0}
    work(task(folder, 2, "members/a", "members/b", member=1, values=standing))
    before, after = (checkpoint.load(folder / "members" / name / "checkpoint.pt")["method"] for name in "ab")
    weights = [key for key in before if key.endswith("weight")]
    assert all(torch.allclose(before[key], after[key], atol=1e-5) for key in weights)
    assert not torch.equal(before["targets"], after["targets"])


def test_an_interval_done_again_ends_the_same(folder: Path) -> None:
    work(task(folder, 1, None, "members/a"))
    once = work(task(folder, 2, "members/a", "members/b"))
    (folder / "members/b/checkpoint.pt").unlink()  # a worker that died late in its interval
    with (folder / "members/b/journal.jsonl").open("ab") as file:
        file.write(b'{"event": "epoch", "epoch": 2}\n{"half a li')
    again = work(task(folder, 2, "members/a", "members/b"))
    assert again["score"] == once["score"]
    assert [e["epoch"] for e in journal.read(folder / "members/b/journal.jsonl", "epoch")] == [1, 2]
    shutil.rmtree(folder / "members/b")
    work(task(folder, 1, None, "members/a"))
    assert [e["epoch"] for e in journal.read(folder / "members/a/journal.jsonl", "epoch")] == [1]


def test_a_diverged_member_says_so(folder: Path) -> None:
    said = work(task(folder, 1, None, "members/a", values={**VALUES, "train.lr": 1e30}))
    assert said.keys() == {"diverged"}
    assert "lower train.lr" in said["diverged"]
    assert not (folder / "members/a/checkpoint.pt").exists()


def test_other_data_than_the_search_began_with_is_a_problem(folder: Path) -> None:
    manifest = read_json(folder / "noise.json")
    write_json(folder / "noise.json", {**manifest, "given_sha256": "0" * 64})
    assert "not what the search" in work(task(folder, 1, None, "members/a"))["problem"]
    assert "restore a copy" in _damaged(folder, manifest)["problem"]


def _damaged(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    write_json(folder / "noise.json", manifest)
    work(task(folder, 1, None, "members/a"))
    (folder / "members/a/checkpoint.pt").write_bytes(b"PK")
    return work(task(folder, 2, "members/a", "members/b"))


def test_only_an_automatic_device_is_replaced(folder: Path) -> None:
    assert _prepared(str(folder), None).config.train.device == "cpu"  # as the settings of these tests say
    assert _prepared(str(folder), "mps").config.train.device == "cpu"
    plan = read_plan(folder)
    write_plan(folder, replace(plan, config=plan.config.with_train(device="auto")))
    _prepared.cache_clear()
    assert _prepared(str(folder), "cpu").config.train.device == "cpu"


def test_the_data_is_prepared_once_per_worker(folder: Path) -> None:
    assert _prepared(str(folder), "cpu") is _prepared(str(folder), "cpu")
    assert asdict(_prepared(str(folder), "cpu").spec)["n"] == 1167  # 1,297 less a tenth
