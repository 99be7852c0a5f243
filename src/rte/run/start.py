"""A run from its first step to its last: begun in a new folder, or gone on with in one."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rte
from rte.config import RunConfig
from rte.data.types import Dataset
from rte.errors import CheckpointError, Found
from rte.evaluate.examiner import Examiner
from rte.files import read_json, refuse_folder, write_json
from rte.run.audit import Auditor
from rte.run.budget import FILE, Closing, by_clock, copy_path, with_budget, within
from rte.run.build import Prepared, load_dataset, make_trainer, prepare, settled
from rte.run.folder import LAST_FOUNDED, check_data, data_folder, fitting, found, held, read_config, read_state
from rte.run.frozen import Keep
from rte.run.kept import Tell
from rte.run.memory import Peak
from rte.run.result import summary
from rte.train import checkpoint
from rte.train.distributed import World
from rte.train.journal import Journal
from rte.train.pace import ByClock
from rte.train.trainer import Observer, Trainer

Afterwards = Callable[[Path, Auditor], None]
"""What is done with the trained method at the end of a run: its folder, and who looks at its labels."""


def start(
    config: RunConfig,
    folder: Path,
    *,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    budget: float | None = None,
    started: float | None = None,
    clock: Path | None = None,
    tell: Tell | None = None,
    dataset: Dataset | None = None,
    afterwards: Afterwards | None = None,
) -> dict[str, Any]:
    """Train from the beginning in a new folder; returns the final numbers.

    budget: seconds from `started` (a monotonic time; now) to the end of it all, instead of epochs. clock: the path of
    such a run, to be repeated exactly. tell: is told how far features are taken. dataset: that of the config, where it
    was loaded already. afterwards: called once the final numbers are written; a budget keeps time for it. Under
    torchrun all processes call this; the first one writes. After an elastic restart they go on from the folder.
    """
    started = time.monotonic() if started is None else started
    world = World.join()
    ours, begun = world.any([world.first and world.claimed(folder), world.first and (folder / LAST_FOUNDED).exists()])
    if ours and begun:
        return resume(folder, data_dir=data_dir, observer=observer, afterwards=afterwards)
    if world.first and not ours:
        refuse_taken(folder)
    config = settled(config, world)
    if budget is not None:
        config = with_budget(config, budget)
    dataset = dataset or load_dataset(config, data_dir)
    for note in dataset.notes if world.first else ():
        warnings.warn(note, Found, stacklevel=2)
    prepared = prepare(config, dataset, Keep.beside(folder, tell))
    if config.train.budget is not None:
        prepared = within(prepared, started, world)
    trainer, examiner = _trainer(prepared, folder, observer, world)  # may refuse: before anything is written
    if world.first:
        world.claim(folder)
        found(folder, prepared, data_dir, again=ours)
    with held(folder, world):
        if world.first and clock is not None:
            copy_path(clock, folder)
        world.wait()
        return _train(prepared, folder, trainer, examiner, started=started, afterwards=afterwards)


def refuse_taken(folder: Path) -> None:
    """Refuse a folder that a new run cannot begin in."""
    if folder.exists():
        raise CheckpointError(
            f"the run folder {folder} exists already; choose another with --out, or go on with `rte resume {folder}`."
        )
    refuse_folder(folder, "--out")


def resume(
    folder: Path,
    *,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    trust_code: bool = False,
    afterwards: Afterwards | None = None,
) -> dict[str, Any]:
    """Go on with a run that stopped, exactly where its last checkpoint left it."""
    config, world = read_config(folder, trust_code=trust_code), World.join()
    with held(folder, world):
        state = read_state(folder, config, "checkpoint") if (folder / "checkpoint.pt").exists() else None
        prepared = prepare(config, load_dataset(config, data_folder(folder, data_dir)), Keep.beside(folder))
        check_data(folder, prepared)
        trainer, examiner = _trainer(prepared, folder, observer, world)
        return _train(prepared, folder, trainer, examiner, state, afterwards=afterwards)


def start_or_resume(
    config: RunConfig,
    folder: Path,
    *,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    budget: float | None = None,
    started: float | None = None,
    trust_code: bool = False,
) -> dict[str, Any]:
    """Begin a run of a series, or go on with it; what was killed before its first step is begun again."""
    world = World.join()
    if world.first and folder.exists() and not (folder / LAST_FOUNDED).is_file() and not world.claimed(folder):
        shutil.rmtree(folder)
    if world.any([world.first and (folder / LAST_FOUNDED).is_file()])[0]:
        return resume(folder, data_dir=data_dir, observer=observer, trust_code=trust_code)
    return start(config, folder, data_dir=data_dir, observer=observer, budget=budget, started=started)


def _trainer(prepared: Prepared, folder: Path, observer: Observer | None, world: World) -> tuple[Trainer, Examiner]:
    """A trainer whose first process keeps its checkpoints in the folder and shows its progress."""

    def save(name: str, values: dict[str, Any]) -> None:
        if world.first:
            state = {**values, "version": rte.__version__, "digest": prepared.config.digest}
            checkpoint.save(folder / f"{name}.pt", state, keep=name == "checkpoint")

    return make_trainer(prepared, save=save, observer=observer if world.first else None, world=world)


def _train(
    prepared: Prepared,
    folder: Path,
    trainer: Trainer,
    examiner: Examiner,
    state: checkpoint.State | None = None,
    started: float | None = None,
    afterwards: Afterwards | None = None,
) -> dict[str, Any]:
    """Train to the end from the checkpoint `state`, or from the start, and leave the final numbers in the folder."""
    first = trainer.world.first
    if (seconds := prepared.config.train.budget) is not None:
        began, audited = started or time.monotonic(), afterwards is not None
        trainer.timeline = by_clock(trainer, examiner, seconds, began, folder / FILE, audited=audited)
    journal = trainer.journal = Journal(folder / "journal.jsonl" if first else None)
    try:
        if state is None:
            journal.rewind(0)
        else:
            with fitting(folder):
                trainer.restore(state)
        if trainer.finished:  # by another process, whose memory counts
            memory = _recorded_memory(folder)
        else:
            with Peak(trainer.device) as peak:
                trainer.fit()
            memory = peak.bytes
        if first:
            write_json(folder / "result.json", {**summary(prepared, trainer, examiner), "memory": memory})
        trainer.world.wait()
        if first and afterwards is not None and _time_for_audit(trainer):
            afterwards(folder, _auditor(prepared, folder, trainer, examiner))
        result: dict[str, Any] = read_json(folder / "result.json")
        return result
    finally:
        journal.close()


def _time_for_audit(trainer: Trainer) -> bool:
    """Whether a run by the clock has kept time for an audit."""
    closing = trainer.timeline.closing if isinstance(trainer.timeline, ByClock) else None
    return not isinstance(closing, Closing) or closing.audited


def _recorded_memory(folder: Path) -> int | None:
    """Bytes that training took, as its last process noted; None where it was killed before it could."""
    path = folder / "result.json"
    known = read_json(path) if path.is_file() else {}
    memory = known.get("memory") if isinstance(known, dict) else None
    return memory if isinstance(memory, int) else None


def _auditor(prepared: Prepared, folder: Path, trainer: Trainer, examiner: Examiner) -> Auditor:
    """Of the state that `rte audit` and `rte evaluate` would open: the selected one, if there is one."""
    if (folder / "selected.pt").is_file():
        trainer.method.load_state_dict(read_state(folder, prepared.config)["method"])
    return Auditor(trainer.method, prepared.config, prepared.dataset, examiner, trainer.margins.table)
