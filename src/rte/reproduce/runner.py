"""The grid: one run after another, each trained once, resumed where it was stopped, and skipped when it is done.

A run that breaks down (its loss is no longer finite) is a result too: failure.json says why, and the grid goes on.
Several processes may work on one folder: each run is locked while it is trained. The locks are the operating system's,
so the lock of a killed process is gone with it; machines that share no file system split the grid with --shard.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from rte.errors import CheckpointError, DataError, TrainingError, UserError
from rte.files import read_json, write_json
from rte.noise.inject import corrupt
from rte.reproduce.measure import measure, taken
from rte.reproduce.plan import INTERVAL, POPULATION, Job, anchored, check_same
from rte.run.build import load_dataset
from rte.run.start import start_or_resume
from rte.train.trainer import Observer


class Watcher(Protocol):
    """Somebody who watches a grid."""

    def begin(self, job: Job, number: int) -> Observer: ...

    def measuring(self, name: str, share: float) -> None: ...

    def end(self, job: Job, outcome: str) -> None: ...


@dataclass(frozen=True)
class State:
    """What is there of a job."""

    trained: bool
    failed: str | None
    complete: bool


def state(job: Job, out: Path) -> State:
    """What is there of a job in the folder `out`."""
    folder = out / job.folder
    if job.kind == "counts":
        there = (folder / "noise.json").is_file()
        return State(there, None, there)
    failure = folder / "failure.json"
    if failure.is_file():
        return State(False, str(read_json(failure)["reason"]), True)
    trained = (folder / "result.json").is_file() and (folder / "config.json").is_file()
    return State(trained, None, trained and job.measures <= taken(folder).keys())


def run(jobs: Sequence[Job], out: Path, *, data_dir: Path | None, watcher: Watcher) -> list[Job]:
    """Bring all jobs to their end; returns those that other processes are still at."""
    left = stages(jobs)
    for _ in range(2):  # what another process was at may be done, or given up, by the end of the first round
        busy = []
        for number, (job, measuring) in enumerate(left, 1):
            with _locked(out, job) as mine:
                if mine:
                    _bring(job, measuring, number, out, data_dir, watcher)
                else:
                    busy.append((job, measuring))
        left = [(job, measuring) for job, measuring in busy if not state(job, out).complete]
    return list(dict.fromkeys(job for job, _ in left))


def stages(jobs: Sequence[Job]) -> list[tuple[Job, bool]]:
    """Everything is trained before anything further is measured: accuracies come first."""
    return [(job, False) for job in jobs] + [(job, True) for job in jobs if job.measures]


def _bring(job: Job, measuring: bool, number: int, out: Path, data_dir: Path | None, watcher: Watcher) -> None:
    """One job to the end of a stage."""
    folder, there = out / job.folder, state(job, out)
    if there.complete or (there.trained and not measuring):
        if job.kind == "run" and not there.failed:
            check_same(folder, job.config)
        watcher.end(job, "there already")
        return
    config = anchored(job.config, data_dir)
    if job.kind == "counts":
        _sample(replace(job, config=config), folder, data_dir)
        watcher.end(job, "sampled")
        return
    observer = watcher.begin(job, number)
    try:
        if not (folder / "result.json").is_file() or not (folder / "config.json").is_file():
            if job.kind == "pbt":
                _search(replace(job, config=config), folder, data_dir)
            else:
                _train(replace(job, config=config), folder, data_dir, observer)
        if measuring:
            measure(folder, job.measures, data_dir=data_dir, say=watcher.measuring)
    except TrainingError as error:
        write_json(folder / "failure.json", {"reason": str(error), "config": config.tree()})
        watcher.end(job, f"failed: {error}")
        return
    result = read_json(folder / "result.json")
    accuracy = result.get("test", {}).get("last")
    trained = "trained" if accuracy is None else f"{100 * accuracy:.2f} %, {result['train_seconds']:.0f} s"
    watcher.end(job, f"measured {', '.join(sorted(job.measures))}" if measuring else trained)


def _train(job: Job, folder: Path, data_dir: Path | None, observer: Observer) -> None:
    """Begin a run, or go on with one."""
    if (folder / "noise.json").is_file():
        check_same(folder, job.config)
    try:
        start_or_resume(job.config, folder, data_dir=data_dir, observer=observer)
    except CheckpointError as error:
        raise CheckpointError(f"{error} (Delete {folder} to train this run of the grid anew.)") from None


def _search(job: Job, folder: Path, data_dir: Path | None) -> None:
    """Begin a search with the paper's population, or go on with one; it draws its own table."""
    from rich.console import Console

    from rte.report import tuning

    if folder.exists() and not (folder / "tune.json").is_file():
        shutil.rmtree(folder)
    if folder.exists():
        plan = tuning.planned(folder, {}, data_dir)
    else:
        plan = tuning.plan(job.config, {"population": POPULATION, "interval": INTERVAL}, (), data_dir)
        tuning.begin(plan, folder)
    tuning.go(plan, folder, Console(), address=None, dashboard=False)


def _sample(job: Job, folder: Path, data_dir: Path | None) -> None:
    """Only the labels: the noise of a whole training set, though runs of that size may train on a part of it."""
    _, manifest = corrupt(load_dataset(job.config, data_dir), job.config.noise, job.config.seed)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", job.config.tree())
    write_json(folder / "noise.json", manifest.tree())


def missing_data(jobs: Sequence[Job], out: Path, data_dir: Path | None) -> dict[str, str]:
    """{folder of a job: the sentence about the file it lacks}; asks once for each kind of data."""
    answers: dict[str, str | None] = {}
    missing: dict[str, str] = {}
    for job in jobs:
        if state(job, out).complete:
            continue
        config = anchored(job.config, data_dir)
        kind = f"{config.data_name} {config.data!r} {config.noise.file}"
        if kind not in answers:
            answers[kind] = _lack(config.noise.file, job, data_dir)
        if (sentence := answers[kind]) is not None:
            missing[job.folder] = sentence
    return missing


def _lack(labels: str | None, job: Job, data_dir: Path | None) -> str | None:
    try:
        load_dataset(job.config, data_dir)
    except DataError as error:
        return str(error)
    if labels and not Path(labels).is_file():
        place = f"expected at {labels}" if data_dir else "pass --data-dir DIR or set RTE_DATA to its folder"
        return f"the label file {Path(labels).name} is missing; {place} (see docs/reproducing.md for where to get it)."
    return None


@contextmanager
def _locked(out: Path, job: Job) -> Iterator[bool]:
    """Whether this process may work on the job while inside."""
    folder = out / ".locks"
    lock = FileLock(folder / f"{job.folder}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise UserError(f"cannot write to {folder} ({error.strerror}); choose another folder with --out.") from None
    try:
        yield True
    finally:
        lock.release()
