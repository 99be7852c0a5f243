"""Ray Tune's side of a search. This file imports Ray; nothing else of the package does at its top.

A trial is one interval of one member, and the searcher hands them out: Ray decides where and when they run, and runs
one again whose worker died. So a killed worker costs its interval by construction, a paused member is just one that has
no trial, and what a search has to remember are lines of plain JSON, not Ray's pickles.
"""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.search import Searcher

from rte.errors import ConfigError, TrainingError, UserError
from rte.search.definition import append_record, discard_before, place
from rte.search.interval import work
from rte.search.population import Interval, Population, Record

ATTEMPTS = 5
"""How often an interval is tried again after its worker died."""

PATIENCE = 30.0
"""Seconds between looks at whether there still is a cluster."""


class Conductor(Searcher):  # type: ignore[misc]
    """Hands out intervals and takes down how they went; `watch` is called after each."""

    def __init__(
        self, population: Population, folder: Path, session: str, *, cpus: float, gpus: float, watch: Callable[[], None]
    ) -> None:
        super().__init__()
        self.population, self.folder, self.session, self.watch = population, folder, session, watch
        self.cpus, self.gpus = cpus, gpus
        self.jobs: dict[str, Interval] = {}
        self.causes: dict[str, str] = {}  # of a trial's latest failure
        self.problem: UserError | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Ray pickles what it is given for a restart of its own, which is never asked for

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the ledger knows it all."""

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """The next trial; None while nothing can start, FINISHED when all is done."""
        if self.population.finished:
            return str(Searcher.FINISHED)
        try:
            job = None if self.problem else self.population.next_interval()
        except UserError as error:
            self.problem, job = error, None
        if job is None:
            return None
        self.jobs[trial_id] = job
        self.watch()
        return {
            "folder": str(self.folder),
            "place": place(job.member, job.until, self.session),
            "source": job.source,
            "member": job.member,
            "parent": job.parent,
            "until": job.until,
            "values": job.values,
            "cpus": self.cpus,
            "device": "cpu" if self.gpus == 0 else None,
        }

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Take down an interval."""
        job, cause = self.jobs.pop(trial_id, None), self.causes.pop(trial_id, "for a reason unknown")
        if job is None or self.problem:
            return
        if error or result is None:
            self.problem = TrainingError(
                f"member {job.member} failed {ATTEMPTS + 1} times between epochs {job.start} and {job.until} "
                f"({cause}); mend the cause, then go on with `rte tune --resume {self.folder}`."
            )
        elif "problem" in result:
            self.problem = ConfigError(str(result["problem"]))
        else:
            self._take_down(job, result)

    def died(self, trial_id: str, cause: str) -> None:
        """Note that the worker of a trial died, or failed; Ray runs the trial again."""
        self.causes[trial_id] = cause
        job = self.jobs[trial_id]
        print(f"member {job.member}: the interval to epoch {job.until} is done again ({cause})", flush=True)

    def _take_down(self, job: Interval, result: dict[str, Any]) -> None:
        record = Record(
            member=job.member,
            start=job.start,
            until=job.until,
            parent=job.parent,
            values=job.values,
            score=None if "diverged" in result else float(result["score"]),
            place=place(job.member, job.until, self.session),
            seconds=round(float(result.get("seconds", 0.0)), 3),
        )
        try:
            append_record(self.folder, record)
        except OSError as error:
            self.problem = UserError(
                f"cannot write {self.folder / 'population.jsonl'} ({error.strerror}); free space, then go on with "
                f"`rte tune --resume {self.folder}`."
            )
            return
        self.population.add(record)
        discard_before(self.folder, self.population.needed_from)
        self.watch()


class Brake(tune.Stopper):  # type: ignore[misc]
    """Stops everything when the conductor has met a problem, or when the last host is gone."""

    def __init__(self, conductor: Conductor) -> None:
        self.conductor = conductor
        self.looked = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        if time.monotonic() - self.looked > PATIENCE:
            self.looked = time.monotonic()
            if not any(node["Alive"] for node in ray.nodes()):
                folder = self.conductor.folder
                raise TrainingError(f"Ray lost its last host; go on with `rte tune --resume {folder}`.")
        return self.conductor.problem is not None


class Chronicle(tune.Callback):  # type: ignore[misc]
    """Tells the conductor of trials that have to be run again, and why."""

    def __init__(self, conductor: Conductor) -> None:
        self.conductor = conductor

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.conductor.died(trial.trial_id, last_line(trial.error_file))


def conduct(conductor: Conductor, scratch: Path, slots: int) -> None:
    """Run trials until the search is finished; raises the problem that stopped it, if one did."""
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(slots)
    resources = {"cpu": conductor.cpus, "gpu": conductor.gpus}
    tuner = tune.Tuner(
        tune.with_resources(work, resources),
        tune_config=tune.TuneConfig(
            search_alg=conductor, num_samples=-1, reuse_actors=True, trial_dirname_creator=_directory
        ),
        run_config=tune.RunConfig(
            name="trials",
            storage_path=str(scratch),
            verbose=0,
            stop=Brake(conductor),
            callbacks=[Chronicle(conductor)],
            failure_config=tune.FailureConfig(max_failures=ATTEMPTS),
        ),
    )
    tuner.fit()
    if conductor.problem is not None:
        raise conductor.problem


def _directory(trial: Any) -> str:
    return str(trial.trial_id)


def last_line(file: str | None) -> str:
    """What a traceback in a file says at its end, short enough for a sentence."""
    lines = Path(file).read_text(encoding="utf-8").strip().splitlines() if file and Path(file).exists() else []
    return textwrap.shorten(lines[-1] if lines else "for a reason unknown", 120, placeholder=" ...")
