"""What a search was asked to do, and what its folder holds while it goes on.

tune.json         the settings of the search     members/            the states that may still be needed
population.jsonl  the intervals done so far      ray/                scratch of Ray, and what it said
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import rte
from rte.config import RunConfig, Tree, validate
from rte.errors import CheckpointError, ConfigError
from rte.files import expanded, read_json, write_json
from rte.run.folder import warn_of_changes
from rte.run.pretrained import recognised
from rte.search.population import Population, Record
from rte.search.space import Space, from_tree, to_tree
from rte.settings import Settings, setting

HOLDOUT = 0.1
"""The share that is held out for the score unless train.holdout says otherwise."""


class SearchConfig(Settings):
    """How to search."""

    format: Literal[1] = setting(1, "of tune.json")
    population: int = setting(35, "members", ge=2)
    interval: int = setting(2, "epochs between decisions", ge=1)
    asynchronous: bool = setting(False, "go on without waiting for the whole population; faster, but not reproducible")
    cpus_per_trial: float = setting(1.0, "cores for each member that is training", gt=0.0)
    gpus_per_trial: float | None = setting(None, "GPUs, or a fraction of one; none: one if there are any", ge=0.0)


@dataclass(frozen=True)
class Search:
    """A search: the run that every member does, the values that differ, and how to search."""

    config: RunConfig
    search: SearchConfig
    space: Space
    data_dir: Path | None

    @classmethod
    def make(cls, config: RunConfig, search: SearchConfig, space: Space, data_dir: Path | None) -> Search:
        """The search on a run's settings; a part of the data is held out for the score, evaluated at each decision."""
        config = recognised(config)
        train = config.train
        if search.interval >= train.epochs:
            raise ConfigError(
                f"--interval {search.interval} leaves no decision within train.epochs = {train.epochs}; "
                "give a smaller interval or more epochs."
            )
        every = math.gcd(train.evaluate_every, search.interval)
        config = config.with_train(holdout=train.holdout or HOLDOUT, evaluate_every=every)
        return cls(_anchored(config), search, space, data_dir)

    def tree(self) -> Tree:
        return {
            "rte": rte.__version__,
            "search": self.search.model_dump(mode="json"),
            "space": to_tree(self.space),
            "config": self.config.tree(),
            "data_dir": None if self.data_dir is None else str(self.data_dir.resolve()),
        }

    def population(self, records: list[Record]) -> Population:
        return Population(
            self.space,
            size=self.search.population,
            interval=self.search.interval,
            epochs=self.config.train.epochs,
            seed=self.config.seed,
            asynchronous=self.search.asynchronous,
            records=records,
        )


def _anchored(config: RunConfig) -> RunConfig:
    """The same files, wherever a worker runs: a path that exists from here becomes absolute."""
    tree = config.tree()
    for section, key in (("data", "path"), ("noise", "file")):
        given = tree[section].get(key)
        if given and expanded(given).exists():
            tree[section][key] = str(expanded(given).resolve())
    return RunConfig.from_tree(tree)


def write_plan(folder: Path, plan: Search) -> None:
    """Begin the folder of a search."""
    write_json(folder / "tune.json", plan.tree())


def read_plan(folder: Path, *, trust_code: bool = False) -> Search:
    """The search that a folder is about; `trust_code`: also where it runs code outside the package."""
    path = folder / "tune.json"
    if not path.is_file():
        raise CheckpointError(
            f"{folder} is no folder of a search (it has no tune.json); give the folder that `rte tune` printed."
        )
    tree = read_json(path)
    if not isinstance(tree, dict) or not {"config", "search", "space", "data_dir"} <= tree.keys():
        raise CheckpointError(f"{path} does not describe a search; restore it, or start the search anew.")
    config = RunConfig.from_tree(tree["config"], trust_code)
    warn_of_changes(folder, config)
    return Search(
        config=config,
        search=validate(SearchConfig, tree["search"], "search"),
        space=from_tree(tree["space"]),
        data_dir=None if tree["data_dir"] is None else Path(tree["data_dir"]),
    )


# ---- the ledger: one line per interval that is done


def append_record(folder: Path, record: Record) -> None:
    """Note an interval, on the disk before this returns."""
    with (folder / "population.jsonl").open("ab") as file:
        file.write(json.dumps(record.tree()).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_records(folder: Path) -> list[Record]:
    """All intervals that are done; half a line, left by a kill, is cut off."""
    path = folder / "population.jsonl"
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    lines = whole.split(b"\n") if whole else []
    if path.stat().st_size > len(whole) + bool(lines):
        os.truncate(path, len(whole) + bool(lines))
    return [Record(**_checked(json.loads(line), path)) for line in lines]


def _checked(tree: Any, path: Path) -> Tree:
    if not isinstance(tree, dict) or "until" not in tree:
        raise CheckpointError(f"{path} is damaged; restore it, or start the search anew.")
    return tree


# ---- the states of the members


def place(member: int, epoch: int, session: str) -> str:
    """Where the state of a member at an epoch is kept, within the folder; sessions never write over each other."""
    return f"members/{member:03d}/epoch-{epoch:04d}-{session}"


def discard_before(folder: Path, epoch: int) -> None:
    """Delete the states that nobody can go on from any more."""
    for old in folder.glob("members/*/epoch-*"):
        if int(old.name.split("-")[1]) < epoch:
            shutil.rmtree(old, ignore_errors=True)
