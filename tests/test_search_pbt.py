"""Real searches on Ray: stopped, with a worker killed, with the driver killed; and what a finished one leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from rte.errors import CheckpointError, TrainingError
from rte.files import read_json, write_json
from rte.run.build import load_dataset, prepare
from rte.run.folder import evaluate, load_method
from rte.run.start import resume, start
from rte.search import pbt
from rte.search.definition import Search, place, read_plan, read_records, write_plan
from rte.search.interval import _prepared, work
from rte.search.population import Population, Record
from rte.search.schedule import read_schedule, resolve_with
from rte.train import checkpoint, journal

SEARCH = ["--population", "3", "--interval", "1", "--epochs", "3", "--search", "method.views=[2, 3]"]
SEARCH += ["--set", "train.batch=128", "--seed", "5", "--out", "found"]
PATIENCE = 600.0

pytest.importorskip("ray")


# ---- a search without Ray, to compare with


def serial(plan: Search, folder: Path) -> Population:
    """The same search, one interval after the other in this process."""
    _prepared.cache_clear()
    folder.mkdir()
    write_plan(folder, plan)
    write_json(folder / "noise.json", prepare(plan.config, load_dataset(plan.config, None)).manifest.tree())
    population = plan.population([])
    while (job := population.next_interval()) is not None:
        here = place(job.member, job.until, "serial")
        task = {"folder": str(folder), "place": here, "cpus": 1.0, "device": "cpu", **vars(job)}
        score = work(task)["score"]
        population.add(Record(job.member, job.start, job.until, job.parent, job.values, score, here))
    return population


def comparable(records: list[Record]) -> dict[tuple[int, int], Record]:
    """The records without what may differ: times and places."""
    return {(r.until, r.member): replace(r, place="", seconds=0.0) for r in records}


# ---- one search with a hard life


@dataclass
class Life:
    """A search that was stopped by SIGTERM, lost a worker to SIGKILL, then its driver, and came to its end."""

    folder: Path
    stopped: subprocess.CompletedProcess[str]
    ledgers: list[bytes]
    said: str  # by the session that lost a worker
    begun: set[str]  # the places in which it had begun an interval when its driver was killed
    finished: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    cwd = tmp_path_factory.mktemp("pbt")
    folder = cwd / "found"
    ledger = folder / "population.jsonl"

    def lines() -> int:
        return ledger.read_bytes().count(b"\n") if ledger.exists() else 0

    first = begin(cwd, "digits", *SEARCH)
    wait(lambda: lines() >= 1, first)
    stopped = end(first, signal.SIGTERM)
    ledgers = [ledger.read_bytes()]

    second = begin(cwd, "--resume", "found")
    old = places(folder)
    wait(lambda: bool(training(second.pid)), second)
    os.kill(training(second.pid)[0], signal.SIGKILL)
    log = folder / "ray" / "ray.log"
    wait(lambda: "is done again" in log.read_text(), second)
    noticed = lines()
    wait(lambda: lines() > noticed and bool(training(second.pid)), second)
    end(second, signal.SIGKILL)
    said, begun = log.read_text(), places(folder) - old
    ledgers.append(ledger.read_bytes())

    return Life(folder, stopped, ledgers, said, begun, end(begin(cwd, "--resume", "found")))


def places(folder: Path) -> set[str]:
    """Where there are states of members, whole or in the making."""
    return {str(path.relative_to(folder)) for path in folder.glob("members/*/epoch-*")}


def begin(cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("RTE_DATA", "RAY_ADDRESS")}
    return subprocess.Popen(
        [sys.executable, "-m", "rte", "tune", *arguments],
        cwd=cwd,
        env=environment | {"COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str], number: signal.Signals | None = None) -> subprocess.CompletedProcess[str]:
    if number is not None:
        process.send_signal(number)
    out, errors = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def wait(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.05)


def training(driver: int) -> list[int]:
    """The workers of a driver that are in the middle of an interval."""
    children: dict[int, list[int]] = {}
    busy: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                title = (entry / "cmdline").read_text()
            except OSError:
                continue  # it has just ended
            children.setdefault(parent, []).append(int(entry.name))
            if title.startswith("ray::ImplicitFunc.train"):
                busy.add(int(entry.name))
    found, todo = [], [driver]
    while todo:
        own = children.get(todo.pop(), [])
        found += [pid for pid in own if pid in busy]
        todo += own
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds its victims in /proc")


@pytest.mark.slow
@needs_proc
def test_a_stopped_search_says_how_to_go_on(life: Life) -> None:
    assert life.stopped.returncode == 130
    assert life.stopped.stderr == "rte: stopped by SIGTERM; the state is saved, go on with `rte tune --resume found`.\n"


@pytest.mark.slow
@needs_proc
def test_only_intervals_under_way_are_lost(life: Life, tmp_path: Path) -> None:
    """Whatever was killed, the search is the search that was never disturbed, and nothing recorded was done twice."""
    assert life.finished.returncode == 0, life.finished.stderr
    final = (life.folder / "population.jsonl").read_bytes()
    for earlier in life.ledgers:
        assert final.startswith(earlier)
    records = read_records(life.folder)
    sessions = [record.place.rpartition("-")[2] for record in records]
    assert len(records) == len(comparable(records)) == 9
    assert len(set(sessions)) == 3
    assert sessions == sorted(sessions, key=sessions.index)  # each session went on where the one before had stopped

    assert life.said.count("is done again") == 1  # for one killed worker, one interval of one member
    lost = life.begun - {record.place for record in records}
    cores = len(os.sched_getaffinity(0))
    assert len(lost) <= cores  # for the killed driver, what each core was at

    undisturbed = serial(read_plan(life.folder), tmp_path / "serial")
    expected = [record for rung in undisturbed.rungs.values() for record in rung.values()]
    assert comparable(records) == comparable(expected)
    assert any(record.parent != record.member for record in records)


@pytest.mark.slow
@needs_proc
def test_the_winner_is_an_ordinary_run(life: Life) -> None:
    names = ".lock checkpoint.pt config.json environment.json input.json journal.jsonl noise.json population.jsonl "
    names += "result.json schedule.json schedules.png selected.pt tune.json"
    assert sorted(path.name for path in life.folder.iterdir()) == names.split()
    result, records = read_json(life.folder / "result.json"), read_records(life.folder)
    best = max(record.rank for record in records if record.until == 3)
    assert result["val"]["last"] == result["tune"]["score"] == best
    assert result["tune"]["train_seconds"] == pytest.approx(sum(record.seconds for record in records), abs=0.01)
    assert "epoch 3: best" in life.finished.stdout
    assert "schedule.json" in life.finished.stdout
    assert "ray" not in life.finished.stdout.lower().replace("gray", "").replace("array", "")
    assert [event["epoch"] for event in journal.read(life.folder / "journal.jsonl", "epoch")] == [1, 2, 3]

    assert evaluate(life.folder, which="checkpoint")["test"]["top1"] == result["test"]["last"]
    method, config, _ = load_method(life.folder, torch.device("cpu"))
    assert config.train.epochs == 3
    assert not method.training
    assert pbt.go(read_plan(life.folder), life.folder, watcher=Nobody()) == result  # nothing is left to do


class Nobody:
    """Watches nothing."""

    def begin(self, population: Population) -> None: ...

    def update(self) -> None: ...


@pytest.mark.slow
@needs_proc
def test_the_schedule_replays_the_winner_bit_for_bit(life: Life, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    schedule = read_schedule(life.folder / "schedule.json")
    assert schedule.epochs == 3
    options = {"data": {"name": "digits"}, "seed": 5, "train": {"holdout": 0.1, "batch": 128}}
    replayed = tmp_path / "replayed"
    start(resolve_with(schedule, "digits", options), replayed)
    assert read_json(replayed / "config.json") == read_json(life.folder / "config.json")
    for name in ("checkpoint", "selected"):
        mine, winner = (checkpoint.load(path / f"{name}.pt") for path in (replayed, life.folder))
        assert mine["digest"] == winner["digest"]
        assert all(torch.equal(mine["method"][key], winner["method"][key]) for key in winner["method"])
    shutil.copytree(life.folder, tmp_path / "copy")
    assert resume(tmp_path / "copy")["test"] == read_json(life.folder / "result.json")["test"]


# ---- without Ray


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="exists already; choose another with --out, or `rte tune --resume"):
        pbt.begin(None, tmp_path)  # type: ignore[arg-type]


def test_a_signal_becomes_a_stop() -> None:
    before = signal.getsignal(signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT):
        with pytest.raises(pbt.Interrupted, match=number.name), pbt._interrupts():
            signal.raise_signal(number)
    with pytest.raises(TrainingError), pbt._interrupts():
        raise TrainingError("something else")
    assert signal.getsignal(signal.SIGTERM) == before
