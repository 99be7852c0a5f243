"""From tables to runs: the settings of each cell and seed, and the folder of each run.

Cells that ask for the same settings share one run. A folder is named after the settings that differ from their
defaults, so a later version with further settings finds the runs of an earlier one; that they are the same is checked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rte import registry
from rte.config import RunConfig, check_sections, merge, parse_override, read_preset, resolve
from rte.errors import CheckpointError, ConfigError
from rte.files import expanded, read_json
from rte.reproduce.define import AS_BATCH, Cell, Size, Table

T = TypeVar("T")
POPULATION, INTERVAL = 35, 2
"""The paper's search."""
SMALL = "study"
"""The preset of all cells at laptop size."""


@dataclass(frozen=True)
class Options:
    """What a command line may change: the preset of all cells, any setting, how many seeds, which cells."""

    size: Size = "laptop"
    preset: str | None = None
    overrides: tuple[str, ...] = ()
    seeds: int = 1
    only: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the definitions are taken as they are."""
        return self.preset is None and not self.overrides


@dataclass(frozen=True)
class Job:
    """A run, a search or a sampled label set, with everything that has to be measured on it."""

    config: RunConfig
    title: str
    kind: str = "run"
    measures: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def folder(self) -> str:
        config = self.config
        noise = config.noise.name if not config.noise.ratio else f"{config.noise.name}-{config.noise.ratio:g}"
        noise += f"-{config.noise.key}" if config.noise.key else ""
        method = config.method_name if self.kind == "run" else f"{config.method_name}-{self.kind}"
        return f"{config.data_name}-{method}-{noise}-s{config.seed}-{key(config)}"


def key(config: RunConfig) -> str:
    """A short name for the settings that differ from the defaults; label files count by name, wherever they lie."""
    tree: dict[str, Any] = {"seed": config.seed, "data_name": config.data_name, "method_name": config.method_name}
    for section in ("data", "method", "noise", "views", "net", "train"):
        tree[section] = getattr(config, section).model_dump(mode="json", exclude_defaults=True)
    if config.noise.file:
        tree["noise"]["file"] = Path(config.noise.file).name
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:10]


def configure(table: Table, cell: Cell, options: Options, seed: int) -> RunConfig:
    """The settings of a cell: the size's preset, the cell, what the size changes, the command line."""
    preset = options.preset or (cell.data if options.size == "paper" else SMALL)
    settings = merge({"data": {"name": cell.data}}, cell.settings) if options.size == "laptop" else cell.settings
    settings = merge(settings, _inherited(preset, cell))
    for text in options.overrides:
        change = parse_override(text)
        check_sections(change)
        ratio = change.get("noise", {}).get("ratio") if isinstance(change.get("noise"), dict) else None
        if ratio is not None and settings.get("noise", {}).get("name") in ("none", "labels"):
            raise ConfigError(f"--set {text}: '{cell.title}' of {table.name} takes no ratio; choose cells with --only.")
        settings = merge(settings, change)
    return resolve(preset, {**_batch_filled_in(preset, settings), "seed": seed})


def _batch_filled_in(preset: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the run's batch size in the place of `AS_BATCH`."""
    method = settings.get("method", {})
    waiting = [name for name, value in method.items() if value == AS_BATCH]
    if not waiting:
        return settings
    rest = {name: value for name, value in method.items() if name not in waiting}
    batch = resolve(preset, {**settings, "method": rest}).train.batch
    return {**settings, "method": {**rest, **dict.fromkeys(waiting, batch)}}


def _inherited(preset: str, cell: Cell) -> dict[str, Any]:
    """What the preset says about RTE and counts for the cell's own method too."""
    if not cell.inherit:
        return {}
    tree, name = read_preset(preset), str(cell.settings["method"]["name"])
    known = registry.method(name).Config.model_fields
    strange = [k for k in cell.inherit if k not in known]
    if strange:
        raise ConfigError(f"'{cell.title}' takes over '{strange[0]}', which the method {name} does not have.")
    own = {**tree.get("for", {}).get(name, {}).get("method", {}), **cell.settings["method"]}
    given = tree.get("method", {})
    return {"method": {k: given[k] for k in cell.inherit if k in given and k not in own}}


def jobs(tables: Sequence[Table], options: Options) -> list[Job]:
    """Every run that the tables need, each once, seed by seed: a grid that is stopped early has whole tables first."""
    found: dict[str, Job] = {}
    for seed in range(options.seeds):
        for table in tables:
            for cell in table.at(options.size, options.only):
                job = job_of(table, cell, options, seed)
                old = found.get(job.folder)
                found[job.folder] = job if old is None else replace(old, measures=old.measures | job.measures)
    return list(found.values())


def job_of(table: Table, cell: Cell, options: Options, seed: int) -> Job:
    """The run of one cell and seed."""
    config = configure(table, cell, options, seed)
    kind = "counts" if table.kind == "counts" else "pbt" if cell.search else "run"
    measures = {
        measure
        for measure in (*table.measured(options.size), *table.figures)
        if measure in ("mce", "reliability", "losses")
    }
    column = cell.column
    if re.fullmatch(r"[\d.]+ %", column) and config.noise.ratio:  # the size or --set may have changed it
        column = f"{100 * config.noise.ratio:g} %"
    return Job(config, f"{cell.row} {column} s{seed}", kind, frozenset(measures))


def shard(all_: Sequence[T], text: str | None) -> list[T]:
    """Shard i of n, "i/n", of jobs: every n-th, from the i-th on."""
    if text is None:
        return list(all_)
    left, _, right = text.partition("/")
    if not (left.isdecimal() and right.isdecimal() and 1 <= int(left) <= int(right)):
        raise ConfigError(f"--shard {text}: write it as i/n with i from 1 to n, such as 2/8.")
    return list(all_[int(left) - 1 :: int(right)])


def anchored(config: RunConfig, data_dir: Path | None) -> RunConfig:
    """The same run with its label file found: as it was named from here, or else in the data folder."""
    file = config.noise.file
    if not file or expanded(file).is_file() or data_dir is None:
        return config
    return replace(config, noise=config.noise.model_copy(update={"file": str(expanded(data_dir) / file)}))


def check_same(folder: Path, config: RunConfig) -> None:
    """A folder of this name must be this very run."""
    there = RunConfig.from_tree(read_json(folder / "config.json"))
    if bare(there) != bare(config):
        raise CheckpointError(
            f"the run folder {folder} holds other settings than this run (those of another version?); "
            "move it away, or choose another folder with --out."
        )


def bare(config: RunConfig) -> RunConfig:
    """Without the place of its label file, and without the precision, which `auto` leaves to the machine."""
    file = Path(config.noise.file).name if config.noise.file else None
    return replace(config, noise=config.noise.model_copy(update={"file": file})).with_train(precision="auto")
