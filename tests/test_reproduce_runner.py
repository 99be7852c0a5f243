"""The grid on digits: killed and resumed, skipped when done, locked while it is at work, failures kept as results."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rte.errors import DataError, TrainingError
from rte.reproduce import runner
from rte.reproduce.define import find
from rte.reproduce.plan import Job, Options, jobs
from rte.reproduce.summary import summarise

SET = (
    "data.name=digits", "train.epochs=2", "train.batch=256", "train.device=cpu", "views.pad=1", "views.flip=false",
    "net.name=compact-8",
)  # fmt: skip
DIGITS = Options(overrides=SET, only=("GCE", "CE"))


class Silent:
    """Watches and keeps what it is told."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def begin(self, job: Job, number: int) -> Any:
        return None

    def measuring(self, name: str, share: float) -> None: ...

    def end(self, job: Job, outcome: str) -> None:
        self.outcomes.append(outcome)


def grid(out: Path, options: Options = DIGITS, table: str = "patrini") -> list[str]:
    watcher = Silent()
    assert runner.run(jobs([find(table)], options), out, data_dir=None, watcher=watcher) == []
    return watcher.outcomes


def numbers(out: Path, options: Options = DIGITS, table: str = "patrini") -> list[Any]:
    return [cell["ours"] for cell in summarise(find(table), options, out)["cells"]]


def test_a_run_that_is_done_is_skipped(tmp_path: Path) -> None:
    first = grid(tmp_path)
    assert all("%" in outcome for outcome in first)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert grid(tmp_path) == ["there already"] * 2
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}


def test_further_measures_need_no_further_training(tmp_path: Path) -> None:
    options = replace(DIGITS, only=("40 %",))
    assert len(grid(tmp_path, options, "reliability")) == 2  # trained, measured
    checkpoint = next(tmp_path.glob("*/checkpoint.pt"))
    before = checkpoint.stat().st_mtime_ns
    assert grid(tmp_path, options, "histograms") == ["there already", "measured losses"]
    assert checkpoint.stat().st_mtime_ns == before
    measured = json.loads((checkpoint.parent / "measures.json").read_text())
    assert set(measured) == {"reliability", "losses"}
    assert sum(measured["reliability"]["count"]) == 500
    counts = [sum(measured["losses"][name]["count"]) for name in ("right", "wrong")]
    assert counts == [778, 519]  # 40 % of 1,297
    run = summarise(find("reliability"), options, tmp_path)["cells"][0]["runs"][0]
    assert measured["reliability"]["ece"] == pytest.approx(run["ece"], abs=1e-6)


@pytest.mark.slow
def test_killed_anywhere_it_ends_in_the_same_numbers(tmp_path: Path) -> None:
    """SIGKILL in the middle of the second run, then the same command again, against a grid that was left in peace."""
    options = replace(DIGITS, overrides=(*SET, "train.epochs=6", "train.batch=64", "train.checkpoint_minutes=0.005"))
    arguments = [text for each in options.overrides for text in ("--set", each)]
    arguments += [text for each in options.only for text in ("--only", each)]
    command = [sys.executable, "-m", "rte", "reproduce", "patrini", "--out", "killed", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "RTE_DATA"} | {"COLUMNS": "200"}
    second = tmp_path / "killed" / jobs([find("patrini")], options)[1].folder
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 300
        while not (second / "checkpoint.pt").exists():
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (second / "result.json").exists()
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "there already" in done.stdout
    in_peace = ["peace" if text == "killed" else text for text in command]
    subprocess.run(in_peace, env=environment, cwd=tmp_path, capture_output=True, timeout=300, check=True)
    assert numbers(tmp_path / "killed", options) == numbers(tmp_path / "peace", options)
    assert (tmp_path / "killed" / "results" / "patrini.json").is_file()


def test_a_folder_that_was_killed_before_its_first_step_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / jobs([find("patrini")], DIGITS)[0].folder
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert len(grid(tmp_path)) == 2
    assert (folder / "result.json").is_file()


def test_a_run_that_breaks_down_is_a_result_and_the_grid_goes_on(tmp_path: Path) -> None:
    options = replace(DIGITS, overrides=(*SET, "train.lr=1e30"))
    outcomes = grid(tmp_path, options)
    assert len(outcomes) == 2
    assert all(outcome.startswith("failed: ") for outcome in outcomes)
    tree = summarise(find("patrini"), options, tmp_path)
    assert [run["status"] for cell in tree["cells"] for run in cell["runs"]] == ["failed"] * 2
    assert "finite" in tree["cells"][0]["runs"][0]["reason"] or "is nan" in tree["cells"][0]["runs"][0]["reason"]
    assert grid(tmp_path, options) == ["there already"] * 2


def test_other_errors_stop_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **rest: Any) -> None:
        raise DataError("the disk is on fire; put it out.")

    monkeypatch.setattr(runner, "start_or_resume", broken)
    with pytest.raises(DataError, match="put it out"):
        grid(tmp_path)
    assert not list(tmp_path.glob("*/failure.json"))
    assert not issubclass(DataError, TrainingError)


def test_two_processes_do_not_take_the_same_run(tmp_path: Path) -> None:
    first = jobs([find("patrini")], DIGITS)[0]
    (tmp_path / ".locks").mkdir()
    watcher = Silent()
    with (tmp_path / ".locks" / f"{first.folder}.lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        busy = runner.run(jobs([find("patrini")], DIGITS), tmp_path, data_dir=None, watcher=watcher)
        assert [job.folder for job in busy] == [first.folder]
        assert not (tmp_path / first.folder).exists()
        assert len(watcher.outcomes) == 1
    assert len(grid(tmp_path)) == 2  # the lock went with its holder, though its file is still there


def test_counts_are_sampled_without_training_and_summaries_are_the_same_each_time(tmp_path: Path) -> None:
    options = replace(DIGITS, only=(), seeds=2)
    assert grid(tmp_path, options, "counts") == ["sampled"] * 2
    tree = summarise(find("counts"), options, tmp_path)
    assert tree == summarise(find("counts"), options, tmp_path)
    classes = tree["cells"][0]["classes"]
    assert [sum(entry["given"][seed] for entry in classes) for seed in (0, 1)] == [1297, 1297]
    assert [sum(entry["right"][seed] for entry in classes) for seed in (0, 1)] == [1297 - 778] * 2  # exactly 60 % wrong


def test_class_counts_of_the_appendix(tmp_path: Path, cifar: Path) -> None:
    """Exactly 20,000 right labels; each class within sampling error of the paper's sample."""
    options = Options(seeds=5)
    watcher = Silent()
    runner.run(jobs([find("counts")], options), tmp_path, data_dir=cifar, watcher=watcher)
    classes = summarise(find("counts"), options, tmp_path)["cells"][0]["classes"]
    for seed in range(5):
        assert sum(entry["right"][seed] for entry in classes) == 20_000
        for entry in classes:
            # 5,000 examples a class, each right with probability 0.4; the difference of two samples, four deviations
            deviation = (2 * 5000 * 0.4 * 0.6) ** 0.5
            assert abs(entry["right"][seed] - entry["paper"]["right"]) < 4 * deviation
            assert abs(entry["given"][seed] - entry["paper"]["given"]) < 4 * (2 * entry["paper"]["given"]) ** 0.5


def test_missing_data_says_which_file_was_expected_where(tmp_path: Path) -> None:
    every = jobs([find("patrini")], Options())
    missing = runner.missing_data(every, tmp_path / "out", tmp_path)
    assert set(missing) == {job.folder for job in every}
    assert "data_batch_1" in next(iter(missing.values()))
    assert str(tmp_path) in next(iter(missing.values()))
    human = replace(DIGITS, only=("RTE",), overrides=("data.name=digits",))
    sentences = set(runner.missing_data(jobs([find("human")], human), tmp_path / "out", tmp_path).values())
    assert f"expected at {tmp_path / 'CIFAR-10_human.pt'}" in " ".join(sentences)
