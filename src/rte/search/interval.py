"""What a worker does: one interval of one member, from the state it inherits to a state at the interval's end.

The place of a state is a run folder in the making: checkpoint.pt, selected.pt and journal.jsonl of the whole lineage.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from rte.errors import DataError, TrainingError, UserError
from rte.files import read_json, write_json
from rte.noise.inject import Manifest
from rte.run.build import Prepared, load_dataset, make_trainer, prepare
from rte.run.result import summary
from rte.search.definition import read_plan
from rte.search.space import applied
from rte.train import checkpoint
from rte.train.journal import Journal

INHERITED = ("journal.jsonl", "selected.pt")


def work(task: dict[str, Any]) -> dict[str, Any]:
    """Do the interval that `task` describes and say how it went. A killed worker just does it again.

    {"score", "seconds"}: done, and the state is on the disk. {"diverged"}: the loss is no longer finite.
    {"problem"}: a mistake that the user has to mend.
    """
    torch.set_num_threads(max(1, int(task["cpus"])))
    try:
        return train(task)
    except TrainingError as error:
        return {"diverged": str(error)}
    except UserError as error:
        return {"problem": str(error)}


def train(task: dict[str, Any]) -> dict[str, Any]:
    """Train one interval and leave its state in the task's place; the score is the accuracy on held-out labels."""
    folder = Path(task["folder"])
    prepared = _prepared(str(folder), task["device"])
    own = replace(prepared, config=applied(prepared.config, task["values"]))
    here = folder / task["place"]
    here.mkdir(parents=True, exist_ok=True)

    def save(name: str, values: dict[str, Any]) -> None:
        if name == "selected":
            checkpoint.save(here / "selected.pt", values)

    trainer, examiner = make_trainer(own, save=save)
    inherits = task["source"] is not None
    source = folder / (task["source"] or "")
    for name in INHERITED if inherits else ():
        shutil.copyfile(source / name, here / name)
    trainer.journal = Journal(here / "journal.jsonl")
    try:
        if inherits:
            trainer.restore(checkpoint.load(source / "checkpoint.pt"))
        else:
            trainer.journal.rewind(0)
        before = trainer.seconds
        trainer.journal.write(
            "inherit", epoch=trainer.epoch, member=task["member"], parent=task["parent"], values=task["values"]
        )
        trainer.fit(until=task["until"])
        if task["until"] == own.config.train.epochs:
            write_json(here / "result.json", summary(own, trainer, examiner))
        checkpoint.save(here / "checkpoint.pt", trainer.checkpoint())
    finally:
        trainer.journal.close()
    return {"score": trainer.history[-1]["val"]["top1"], "seconds": trainer.seconds - before}


@lru_cache(maxsize=1)
def _prepared(folder: str, device: str | None) -> Prepared:
    """Data and noise of a search: the same for all its members, so a worker that is used again has them already."""
    plan = read_plan(Path(folder), trust_code=True)  # the one who began or resumed the search said so
    config = plan.config
    if device is not None and config.train.device == "auto":
        config = config.with_train(device=device)
    prepared = prepare(config, load_dataset(config, plan.data_dir))
    recorded = Manifest.from_tree(read_json(Path(folder) / "noise.json"))
    if recorded.given_sha256 != prepared.manifest.given_sha256:
        raise DataError(
            f"the data on {platform.node()} is not what the search in {folder} began with (its labels are not those of "
            "noise.json); restore it, or start a new search."
        )
    return prepared
