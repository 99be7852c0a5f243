"""A run from its first step to its last: begun in a new folder, or gone on with in one."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import rte
from rte.config import RunConfig, digest
from rte.errors import CheckpointError
from rte.evaluate.examiner import Examiner
from rte.files import read_json, write_json
from rte.noise.inject import Manifest
from rte.run.budget import FILE, by_clock, copy_path, fit_network, refuse_short, with_budget
from rte.run.build import Prepared, load_dataset, make_trainer, prepare, settled
from rte.run.folder import LAST_FOUNDED, data_folder, found, read_config
from rte.run.result import summary
from rte.train import checkpoint
from rte.train.distributed import World
from rte.train.journal import Journal
from rte.train.trainer import Observer, Trainer


def start(
    config: RunConfig,
    folder: Path,
    *,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    budget: float | None = None,
    started: float | None = None,
    clock: Path | None = None,
) -> dict[str, Any]:
    """Train from the beginning in a new folder; returns the final numbers.

    budget: seconds from `started` (a monotonic time; now) to the end of it all, instead of epochs. clock: the path of
    such a run, to be repeated exactly. Under torchrun all processes call this; the first one writes. After an elastic
    restart they go on from the folder.
    """
    started = time.monotonic() if started is None else started
    world = World.join()
    ours, begun = world.any([world.first and world.claimed(folder), world.first and (folder / LAST_FOUNDED).exists()])
    if ours and begun:
        return resume(folder, data_dir=data_dir, observer=observer)
    if world.first and folder.exists() and not ours:
        raise CheckpointError(
            f"the run folder {folder} exists already; choose another with --out, or go on with `rte resume {folder}`."
        )
    config = settled(config, world)
    if budget is not None:
        config = with_budget(config, budget)
    prepared = prepare(config, load_dataset(config, data_dir))
    if config.train.budget is not None:
        prepared = replace(prepared, config=fit_network(prepared, config.train.budget, world))
        refuse_short(config.train.budget, started, world)
    trainer, examiner = _trainer(prepared, folder, observer, world)  # may refuse: before anything is written
    if world.first:
        world.claim(folder)
        found(folder, prepared, data_dir, again=ours)
        if clock is not None:
            copy_path(clock, folder)
    world.wait()
    return _train(prepared, folder, trainer, examiner, started=started)


def resume(
    folder: Path, *, data_dir: Path | None = None, observer: Observer | None = None, trust_code: bool = False
) -> dict[str, Any]:
    """Go on with a run that stopped, exactly where its last checkpoint left it."""
    config = read_config(folder, trust_code=trust_code)
    prepared = prepare(config, load_dataset(config, data_folder(folder, data_dir)))
    recorded = Manifest.from_tree(read_json(folder / "noise.json"))
    if recorded.given_sha256 != prepared.manifest.given_sha256:
        raise CheckpointError(
            f"the data of {folder} has changed since the run began (its labels are not those of noise.json); "
            "restore the data, or start a new run."
        )
    trainer, examiner = _trainer(prepared, folder, observer, World.join())
    path = folder / "checkpoint.pt"
    return _train(prepared, folder, trainer, examiner, checkpoint.load(path) if path.exists() else None)


def _trainer(prepared: Prepared, folder: Path, observer: Observer | None, world: World) -> tuple[Trainer, Examiner]:
    """A trainer whose first process keeps its checkpoints in the folder and shows its progress."""

    def save(name: str, values: dict[str, Any]) -> None:
        if world.first:
            state = {**values, "version": rte.__version__, "digest": prepared.config.digest}
            checkpoint.save(folder / f"{name}.pt", state)

    return make_trainer(prepared, save=save, observer=observer if world.first else None, world=world)


def _train(
    prepared: Prepared,
    folder: Path,
    trainer: Trainer,
    examiner: Examiner,
    state: checkpoint.State | None = None,
    started: float | None = None,
) -> dict[str, Any]:
    """Train to the end from the checkpoint `state`, or from the start, and leave the final numbers in the folder."""
    # an earlier version, which had fewer settings, knew these by another name: that of the file as it wrote it
    as_written = "" if state is None else digest(read_json(folder / "config.json"))
    if state is not None and state["digest"] not in (prepared.config.digest, as_written):
        raise CheckpointError(
            f"{folder / 'checkpoint.pt'} belongs to other settings than config.json; "
            "undo the change to config.json, or start a new run."
        )
    first = trainer.world.first
    if (seconds := prepared.config.train.budget) is not None:
        trainer.timeline = by_clock(trainer, examiner, seconds, started or time.monotonic(), folder / FILE)
    journal = trainer.journal = Journal(folder / "journal.jsonl" if first else None)
    try:
        if state is None:
            journal.rewind(0)
        else:
            trainer.restore(state)
        trainer.fit()
        if first:
            write_json(folder / "result.json", summary(prepared, trainer, examiner))
        trainer.world.wait()
        result: dict[str, Any] = read_json(folder / "result.json")
        return result
    finally:
        journal.close()
