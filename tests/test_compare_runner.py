"""Comparisons that are really trained: stopped and gone on with, failed runs, chosen rates, a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rte.compare import runner
from rte.compare.plan import Comparison, plan
from rte.compare.summary import Row
from rte.config import RunConfig, resolve
from rte.errors import CheckpointError, TrainingError
from rte.files import read_json
from rte.train.trainer import Interrupted

QUICK = {"train": {"epochs": 1, "batch": 256, "examples": 300, "device": "cpu"}, "noise": {"ratio": 0.4}}


class Watched:
    """Counts the runs that are trained, and stops or breaks some."""

    def __init__(self, stop: str = "", fail: str = "") -> None:
        self.begun: list[str] = []
        self.stop, self.fail = stop, fail

    def __call__(self, title: str) -> Any:
        self.begun.append(title)
        if title == self.stop:
            raise Interrupted("SIGINT")
        if title == self.fail:
            raise TrainingError("the loss is nan")
        return self

    def step(self, t: Any, terms: Any) -> None: ...

    def epoch(self, epoch: int, scores: Any) -> None: ...


def configure(name: str) -> RunConfig:
    return resolve("digits", {**QUICK, "method": {"name": name}})


def compare(comparison: Comparison, folder: Path, watch: Watched) -> list[Row]:
    return runner.train(comparison, folder, data_dir=None, watch=watch)


def test_a_stopped_comparison_goes_on_where_it_was(tmp_path: Path) -> None:
    comparison, _ = plan(["ce", "gce"], configure, seeds=2)
    undisturbed = compare(comparison, tmp_path / "whole", Watched())
    folder = tmp_path / "stopped"
    runner.begin(comparison, folder, None)
    with pytest.raises(Interrupted):
        compare(comparison, folder, Watched(stop="ce-s1"))
    again, _ = runner.reopen(folder, None)
    watch = Watched()
    rows = compare(again, folder, watch)
    assert watch.begun == ["ce-s1", "gce-s1"]  # what was done is not done again
    for one, two in zip(undisturbed, rows, strict=True):
        assert one.figures["last"] == two.figures["last"]
    assert read_json(folder / "comparison.json")[0]["method"] == "ce"


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    comparison, _ = plan(["ce"], configure)
    with pytest.raises(CheckpointError, match="exists already; choose another with --out, or go on with `rte resume"):
        runner.begin(comparison, tmp_path, None)


def test_a_run_that_breaks_down_is_a_result_and_is_not_tried_again(tmp_path: Path) -> None:
    comparison, _ = plan(["ce", "gce"], configure)
    (tmp_path / "gce-s0").mkdir()
    rows = {row.method: row for row in compare(comparison, tmp_path, Watched(fail="gce-s0"))}
    assert rows["gce"].failed == "the loss is nan"
    assert rows["ce"].behind == 0
    watch = Watched()
    compare(comparison, tmp_path, watch)
    assert watch.begun == []


def test_further_seeds_have_the_rate_that_held_out_labels_choose(tmp_path: Path) -> None:
    longer = {"epochs": 3, "batch": 64, "examples": None}
    comparison, _ = plan(["ce"], lambda name: configure(name).with_train(**longer), seeds=2, rates="0.0001,1")
    watch = Watched()
    (row,) = compare(comparison, tmp_path, watch)
    held = {
        factor: read_json(tmp_path / f"ce-rate{factor:g}-s0" / "result.json")["val"]["last"] for factor in (0.0001, 1)
    }
    assert held[1] > held[0.0001]
    assert row.factor == 1
    assert watch.begun == ["ce-rate0.0001-s0", "ce-rate1-s0", "ce-rate1-s1"]
    assert row.folders == ("ce-rate1-s0", "ce-rate1-s1")


def test_another_run_in_the_place_of_one_is_noticed(tmp_path: Path) -> None:
    comparison, _ = plan(["ce", "gce"], configure)
    compare(comparison, tmp_path, Watched())
    (tmp_path / "ce-s0").rename(tmp_path / "aside")
    (tmp_path / "gce-s0").rename(tmp_path / "ce-s0")
    with pytest.raises(CheckpointError, match="holds another run"):
        compare(comparison, tmp_path, Watched())


def test_memory_is_recorded_in_every_result(tmp_path: Path) -> None:
    comparison, _ = plan(["ce"], configure)
    (row,) = compare(comparison, tmp_path, Watched())
    if "memory" in row.figures:  # where the system says
        assert 50e6 < row.figures["memory"].mean < 20e9
