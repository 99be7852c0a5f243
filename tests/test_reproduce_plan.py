"""From tables to runs: shared runs, names that last, parts that cover everything once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rte.config import RunConfig
from rte.errors import CheckpointError, ConfigError
from rte.files import write_json
from rte.reproduce.define import Size, find
from rte.reproduce.plan import Options, anchored, check_same, configure, job_of, jobs, key, shard
from rte.reproduce.systems import SYMMETRIC

LAPTOP = Options()
MAIN = 12 + 9 + 2 * len(SYMMETRIC)
"""Runs of the main table: those of the paper's own rows, three of CIFAR-100's at three ratios, and two of each system
that it compares with."""


def test_tables_share_runs_and_what_is_measured_on_them() -> None:
    tables = [find(name) for name in ("main", "mce", "histograms", "reliability")]
    found = jobs(tables, LAPTOP)
    assert len(found) == MAIN  # all of them are in the main table
    at_40 = next(job for job in found if job.title == "RTE CIFAR-10 40 % s0")
    assert at_40.measures == {"mce", "losses", "reliability"}
    assert len(jobs(tables, replace(LAPTOP, seeds=3))) == 3 * MAIN


def test_a_run_is_called_after_the_noise_it_has() -> None:
    less = replace(LAPTOP, overrides=("noise.ratio=0.6",))
    assert all("80 %" in job.title for job in jobs([find("ablations")], LAPTOP))
    assert all("60 %" in job.title for job in jobs([find("ablations")], less))
    assert next(job.title for job in jobs([find("human")], LAPTOP)) == "CE CIFAR-10N worst s0"


def test_seeds_come_one_after_another() -> None:
    found = jobs([find("main")], replace(LAPTOP, seeds=2))
    assert [job.config.seed for job in found] == [0] * MAIN + [1] * MAIN


def test_folders_are_the_settings() -> None:
    found = jobs([find("main"), find("confusion")], LAPTOP)
    assert len({job.folder for job in found}) == len(found) == MAIN + 3
    assert len({job.config.digest for job in found}) == MAIN + 3
    again = jobs([find("main"), find("confusion")], LAPTOP)
    assert [job.folder for job in found] == [job.folder for job in again]
    longer = jobs([find("main")], replace(LAPTOP, overrides=("train.epochs=7",)))
    assert {job.folder for job in longer}.isdisjoint(job.folder for job in found)


def test_settings_at_their_defaults_do_not_count_in_a_folder_s_name() -> None:
    """A version with a further setting finds the runs of the version before it."""
    table = find("main")
    config = configure(table, table.cells[0], LAPTOP, 0)
    said = RunConfig.from_tree({**config.tree(), "views": {**config.tree()["views"]}})
    spoken = replace(config, train=config.train.model_copy(update={"clip": None}))
    assert key(config) == key(said) == key(spoken)
    assert key(config) != key(replace(config, train=config.train.model_copy(update={"clip": 1.0})))


@pytest.mark.parametrize("n", [1, 2, 5, 8, 40])
def test_parts_cover_all_exactly_once(n: int) -> None:
    every = jobs([find("main"), find("confusion"), find("patrini")], LAPTOP)
    parts = [shard(every, f"{i}/{n}") for i in range(1, n + 1)]
    assert sorted(job.folder for piece in parts for job in piece) == sorted(job.folder for job in every)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert shard(every, None) == every


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "/"])
def test_parts_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="write it as i/n"):
        shard([], text)


def test_a_search_and_a_run_are_different_things() -> None:
    table = find("main")
    search = next(cell for cell in table.cells if cell.search and cell.column == "CIFAR-10 40 %")
    manual = next(cell for cell in table.cells if cell.row == "RTE" and cell.column == "CIFAR-10 40 %")
    paper = Options(size="paper")
    a, b = (job_of(table, cell, paper, 0) for cell in (search, manual))
    assert a.kind == "pbt"
    assert a.config == b.config
    assert a.folder != b.folder


def test_a_ratio_for_cells_without_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="'CE, CIFAR-10 0 %' of main takes no ratio; choose cells with --only"):
        jobs([find("main")], replace(LAPTOP, overrides=("noise.ratio=0.6",)))


def test_label_files_are_found_in_the_data_folder_and_count_by_name(tmp_path: Path) -> None:
    (tmp_path / "CIFAR-10_human.pt").write_bytes(b"")
    config = job_of(find("human"), find("human").at("laptop")[0], LAPTOP, 0).config
    placed = anchored(config, tmp_path)
    assert placed.noise.file == str(tmp_path / "CIFAR-10_human.pt")
    assert key(placed) == key(config)
    assert anchored(config, None) == config
    write_json(tmp_path / "config.json", placed.tree())
    check_same(tmp_path, config)


def test_a_folder_with_other_settings_is_not_taken(tmp_path: Path) -> None:
    config = jobs([find("main")], LAPTOP)[0].config
    write_json(tmp_path / "config.json", config.tree())
    check_same(tmp_path, config)
    with pytest.raises(CheckpointError, match="holds other settings than this run"):
        check_same(tmp_path, config.with_train(epochs=9))


@pytest.mark.parametrize("size", ["laptop", "paper"])
def test_anchoring_with_a_teacher_at_one_half_has_the_objective_of_rte_with_sharpening(size: Size) -> None:
    table, options = find("ablations"), replace(LAPTOP, size=size)
    rows = {cell.row: configure(table, cell, options, 0) for cell in table.cells}
    ours, theirs = rows["ECR with label sharpening"].method, rows["Aug. anchoring, K = 2, EMA"].method
    for name in ("q", "jsd_weight", "ecr_weight", "temperature", "ema", "decay", "warmup"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for row in ("Label guessing, K = 2", "Aug. anchoring, K = 2"):
        for name in ("q", "jsd_weight", "ecr_weight"):
            assert getattr(rows[row].method, name) == getattr(ours, name), (row, name)


def test_a_key_that_a_method_does_not_have_is_not_dropped_in_silence() -> None:
    table = find("ablations")
    cell = next(cell for cell in table.cells if cell.row == "Label guessing, K = 2")
    with pytest.raises(ConfigError, match="takes over 'decay', which the method label_guessing does not have"):
        configure(table, replace(cell, inherit=("decay",)), LAPTOP, 0)


@pytest.mark.parametrize(("size", "batch"), [("laptop", None), ("paper", 128)])
def test_without_batch_sync_ecr_draws_as_many_as_the_task_loss(size: Size, batch: int | None) -> None:
    table, options = find("ablations"), replace(LAPTOP, size=size)
    cell = next(cell for cell in table.cells if cell.row == "N* = 2, no batch-sync")
    config = configure(table, cell, options, 0)
    assert config.method.ecr_batch == config.train.batch == (batch or config.train.batch)
    other = configure(table, cell, replace(options, overrides=("train.batch=48",)), 0)
    assert other.method.ecr_batch == 48


def test_the_precision_that_a_machine_chose_makes_no_other_run(tmp_path: Path) -> None:
    table = find("main")
    config = configure(table, table.cells[0], LAPTOP, 0)
    assert config.train.precision == "auto"
    write_json(tmp_path / "config.json", config.with_train(precision="bf16").tree())
    check_same(tmp_path, config)
    write_json(tmp_path / "config.json", config.with_train(epochs=7).tree())
    with pytest.raises(CheckpointError, match="holds other settings"):
        check_same(tmp_path, config)
