"""Population based training: a search, from settings to the winner's run folder."""

from __future__ import annotations

import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import rte
from rte.config import RunConfig
from rte.errors import CheckpointError
from rte.files import locked, read_json, write_json
from rte.run.build import load_dataset, make_trainer, prepare
from rte.run.environment import environment
from rte.search.cluster import ray_cluster, require, slots
from rte.search.definition import Search, SearchConfig, read_records, write_plan
from rte.search.population import Population
from rte.search.schedule import FoundSchedule, from_lineage
from rte.search.space import applied
from rte.train import checkpoint
from rte.train.trainer import Interrupted


class Watcher(Protocol):
    """Somebody who watches a search: a table in the terminal."""

    def begin(self, population: Population) -> None: ...

    def update(self) -> None: ...


def begin(plan: Search, folder: Path) -> None:
    """Make the folder of a new search, after everything that can be refused has been."""
    require()
    if folder.exists():
        raise CheckpointError(
            f"the folder {folder} exists already; choose another with --out, or `rte tune --resume {folder}`."
        )
    prepared = prepare(plan.config, load_dataset(plan.config, plan.data_dir))
    on_cpu = replace(prepared, config=plan.config.with_train(device="cpu"))  # this host may lack the workers' GPUs
    make_trainer(on_cpu, save=lambda name, state: None)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise CheckpointError(
            f"cannot make the folder {folder} ({error.strerror}); choose another with --out."
        ) from None
    write_json(folder / "environment.json", {**environment(plan.data_dir), "code": plan.config.code})
    write_json(folder / "input.json", asdict(prepared.spec))
    write_json(folder / "noise.json", prepared.manifest.tree())
    write_plan(folder, plan)


def go(
    plan: Search, folder: Path, *, watcher: Watcher, address: str | None = None, dashboard: bool = False
) -> dict[str, Any]:
    """Search until the end; returns the final numbers of the winner.

    What is done already stays done: after an interrupt or a kill, only intervals that were under way are done again.
    """
    require()
    with locked(folder / ".lock", str(folder)):
        population = plan.population(read_records(folder))
        watcher.begin(population)
        if (folder / "config.json").exists():
            return {**read_json(folder / "result.json"), "tune": _account(plan, population)}
        if not population.finished:
            _search(plan.search, folder.resolve(), population, watcher, address, dashboard)
        return finish(plan, folder, population)


def _search(
    search: SearchConfig, folder: Path, population: Population, watcher: Watcher, address: str | None, dashboard: bool
) -> None:
    """Let Ray do the intervals that are not done yet."""
    scratch = folder / "ray"
    shutil.rmtree(scratch, ignore_errors=True)
    log = scratch / "ray.log"
    # twice: as Ray starts, it puts signal handlers of its own in the place of ours
    with _interrupts(), ray_cluster(address, dashboard=dashboard, log=log) as ray, _interrupts():
        from rte.search.conductor import Conductor, conduct

        cpus, gpus = search.cpus_per_trial, search.gpus_per_trial
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU", 0) >= 1 else 0.0
        conductor = Conductor(population, folder, secrets.token_hex(3), cpus=cpus, gpus=gpus, watch=watcher.update)
        conduct(conductor, scratch, slots(ray, cpus, gpus))


@contextmanager
def _interrupts() -> Iterator[None]:
    """Within, SIGINT and SIGTERM end the search at once: all that is done is on the disk already."""
    caught: list[str] = []

    def stop(number: int, frame: FrameType | None) -> None:
        caught.append(signal.Signals(number).name)
        raise KeyboardInterrupt

    old: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(caught[0] if caught else "SIGINT") from None
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def finish(plan: Search, folder: Path, population: Population) -> dict[str, Any]:
    """Make the winner an ordinary run folder, with the schedule that was found beside it."""
    winner = population.winner()
    lineage = population.lineage(winner)
    found = from_lineage(
        lineage,
        data=plan.config.data_name,
        method=plan.config.method_name,
        interval=plan.search.interval,
        population=plan.search.population,
        seed=plan.config.seed,
    )
    config = winning_config(plan.config, found)
    here = folder / lineage[-1].place
    for name in ("checkpoint", "selected"):
        state = checkpoint.load(here / f"{name}.pt")
        checkpoint.save(folder / f"{name}.pt", {**state, "version": rte.__version__, "digest": config.digest})
    shutil.copyfile(here / "journal.jsonl", folder / "journal.jsonl")
    result: dict[str, Any] = read_json(here / "result.json")
    result |= {"digest": config.digest, "tune": _account(plan, population)}
    write_json(folder / "schedule.json", found.model_dump(mode="json"))
    write_json(folder / "result.json", result)
    write_json(folder / "config.json", config.tree())  # last: from here on it is a run folder
    for scratch in ("members", "ray"):
        shutil.rmtree(folder / scratch, ignore_errors=True)
    return result


def winning_config(config: RunConfig, found: FoundSchedule) -> RunConfig:
    """The settings under which one run does what the winner's lineage did."""
    tree = found.tree(config.train.epochs)
    return applied(config, {key: tree[key.split(".")[0]][key.split(".", 1)[1]] for key in found.values})


def _account(plan: Search, population: Population) -> dict[str, Any]:
    winner = population.winner()
    records = [record for rung in population.rungs.values() for record in rung.values()]
    return {
        "population": plan.search.population,
        "interval": plan.search.interval,
        "asynchronous": plan.search.asynchronous,
        "winner": winner,
        "score": population.rungs[population.epochs][winner].score,
        "inherited": sum(record.parent != record.member for record in records),
        "train_seconds": round(sum(record.seconds for record in records), 2),
    }
