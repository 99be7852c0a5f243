"""What a run folder holds, and how it is read again.

config.json       the resolved settings             journal.jsonl   what happened, line by line
environment.json  versions, machine, time           checkpoint.pt   the latest state
input.json        classes, image shape, statistics  selected.pt     the best state on held-out noisy data
noise.json        the noise manifest                result.json     the final numbers
.lock             held while a process writes         backbone.safetensors  the network, if it stays as it is
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from rte import registry
from rte.code import CodeChanged, changes, found_again, missing
from rte.config import RunConfig, digest
from rte.errors import CheckpointError, ConfigError, NoiseError, UntrustedCode, did_you_mean
from rte.evaluate.examiner import Examiner
from rte.files import locked, read_json, write_json
from rte.methods.base import Method
from rte.noise.inject import Manifest
from rte.run.build import Prepared, build_method, load_dataset, prepare
from rte.run.environment import environment
from rte.run.frozen import Keep, keep_backbone
from rte.run.inputs import InputSpec, from_json
from rte.train import checkpoint
from rte.train.device import choose_device
from rte.train.distributed import World

STATES = ("checkpoint", "selected")
LAST_FOUNDED = "noise.json"
"""Where this file is, a run folder is whole."""


def found(folder: Path, prepared: Prepared, data_dir: Path | None, *, again: bool) -> None:
    """Make a run folder with everything that is known before the first step; `again`: it may be there, half made."""
    try:
        folder.mkdir(parents=True, exist_ok=again)
    except OSError as error:
        raise CheckpointError(
            f"cannot make the run folder {folder} ({error.strerror}); choose another with --out."
        ) from None
    write_json(folder / "config.json", prepared.config.tree())
    write_json(folder / "environment.json", {**environment(data_dir), "code": prepared.config.code})
    write_json(folder / "input.json", asdict(prepared.spec))
    keep_backbone(folder, prepared.config, prepared.spec)
    write_json(folder / LAST_FOUNDED, prepared.manifest.tree())


@contextmanager
def held(folder: Path, world: World | None = None) -> Iterator[None]:
    """Keep other processes from writing to a run folder; of several that train together, the first one does."""
    with locked(folder / ".lock", str(folder)) if world is None or world.first else nullcontext():
        yield


def read_config(folder: Path, *, trust_code: bool = False) -> RunConfig:
    """The settings of a run folder. Where they name code that is not part of the package, it runs with `trust_code`.

    A warning says where such code is not what the run began with.
    """
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} is no run folder (it has no config.json); give the folder that `rte fit` printed."
        )
    for record in _recorded_code(folder):
        if (text := missing(record)) is not None:
            raise CheckpointError(f"{folder}: {text}")
    try:
        tree = read_json(folder / "config.json")
        if isinstance(tree, dict):
            tree = registry.renamed(tree, lambda kind, name: found_again(name, (folder, Path.cwd())))
        config = RunConfig.from_tree(tree, trust_code)
    except UntrustedCode as error:
        raise UntrustedCode(f"{folder}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{folder / 'config.json'}: {error}") from None
    warn_of_changes(folder, config)
    return config


def warn_of_changes(folder: Path, config: RunConfig) -> None:
    """Say where code that is not part of the package is not what the folder recorded of it."""
    if now := config.code:
        for text in changes(_recorded_code(folder), now):
            warnings.warn(text, CodeChanged, stacklevel=1)


def _recorded_code(folder: Path) -> list[dict[str, Any]]:
    """What the folder says of code outside the package; none where it was made before there was any."""
    records = read_environment(folder).get("code") if (folder / "environment.json").is_file() else ()
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def read_state(folder: Path, config: RunConfig, which: str | None = None) -> checkpoint.State:
    """The state "checkpoint" or "selected" of a run folder, the latter if there is one; it must fit the settings."""
    if which not in (None, *STATES):
        raise ConfigError(f"--which {which}: {did_you_mean(str(which), STATES)}")
    name = which or ("selected" if (folder / "selected.pt").exists() else "checkpoint")
    if name == "selected" and not (folder / "selected.pt").exists():
        raise CheckpointError(
            f"{folder} has no selected.pt, as nothing was held out (train.holdout); leave out --which."
        )
    state = checkpoint.load_last(folder / f"{name}.pt")
    # an earlier version, which had fewer settings, knew these by another name: that of the file as it wrote it
    if state.get("digest") not in (config.digest, digest(read_json(folder / "config.json"))):
        raise CheckpointError(
            f"{folder / name}.pt belongs to other settings than config.json; "
            "undo the change to config.json, or start a new run."
        )
    return state


def check_data(folder: Path, prepared: Prepared) -> None:
    """Refuse data whose labels are not those that a run began with."""
    try:
        recorded = Manifest.from_tree(read_json(folder / LAST_FOUNDED))
    except NoiseError as error:
        raise NoiseError(f"{folder / LAST_FOUNDED}: {error}") from None
    if recorded.given_sha256 != prepared.manifest.given_sha256:
        raise CheckpointError(
            f"the data of {folder} has changed since the run began (its labels are not those of noise.json); "
            "restore the data, or start a new run."
        )


def load_method(
    folder: Path,
    device: torch.device,
    which: str | None = None,
    *,
    y: torch.Tensor | None = None,
    trusted: torch.Tensor | None = None,
    trust_code: bool = False,
    known: tuple[RunConfig, checkpoint.State] | None = None,
) -> tuple[Method, RunConfig, InputSpec]:
    """The trained method of a run folder: as selected on held-out noisy data if it was, else as it was last.

    y (N,) are the given labels it was trained on and `trusted` the positions of those known to be right, which only
    `trust` and further training need: `reopen` has them. `known`: settings and state that were read already.
    """
    if known is None:
        config = read_config(folder, trust_code=trust_code)
        known = config, read_state(folder, config, which)
    (config, state), spec = known, read_spec(folder)
    given = torch.zeros(spec.n, dtype=torch.int64) if y is None else y
    method = build_method(config, spec, given, device, trusted=trusted)
    with fitting(folder):
        method.load_state_dict(state["method"])
    return method.eval(), config, spec


@contextmanager
def fitting(folder: Path) -> Iterator[None]:
    """Say so where a checkpoint does not fit the method and networks that the folder's files describe."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
        first = (str(error).strip().splitlines() or ["no more is known"])[-1].strip()
        raise CheckpointError(
            f"the checkpoint in {folder} does not fit the run that config.json and input.json describe ({first}); "
            "restore these files, or use the version of rte that wrote them."
        ) from None


def evaluate(
    folder: Path, *, data_dir: Path | None = None, which: str | None = None, trust_code: bool = False
) -> dict[str, Any]:
    """Score a trained run again, from its folder and its data."""
    method, examiner = reopen(folder, data_dir=data_dir, which=which, trust_code=trust_code)
    return {**examiner(method), "memorisation": examiner.memorisation(method)}


def reopen(
    folder: Path, *, data_dir: Path | None = None, which: str | None = None, trust_code: bool = False
) -> tuple[Method, Examiner]:
    """The trained method of a run folder and the examiner of its data."""
    config = read_config(folder, trust_code=trust_code)
    state, device = read_state(folder, config, which), device_here(config)
    prepared = prepare(config, load_dataset(config, data_folder(folder, data_dir)), Keep.beside(folder))
    check_data(folder, prepared)
    given = torch.from_numpy(prepared.dataset.train.y[prepared.train_rows])
    trusted = torch.from_numpy(prepared.trusted)
    method, _, spec = load_method(folder, device, y=given, trusted=trusted, known=(config, state))
    viewer, rows = spec.viewer(config), (prepared.train_rows, prepared.val_rows)
    batch, threads = config.train.evaluate_batch, config.train.threads
    return method, Examiner(prepared.dataset, *rows, viewer, device, batch=batch, threads=threads)


def data_folder(folder: Path, given: Path | None) -> Path | None:
    """The folder datasets are looked for in: the one given now, else the one the run began with."""
    if given is not None:
        return given
    before = read_environment(folder).get("data_dir")
    return Path(before) if isinstance(before, str) else None


def read_environment(folder: Path) -> dict[str, Any]:
    """What the run folder says of the machine that the run began on."""
    known = read_json(folder / "environment.json")
    return known if isinstance(known, dict) else {}


def device_here(config: RunConfig) -> torch.device:
    """The device that a run was trained on, or another one where this machine has none such."""
    try:
        return choose_device(config.train.device)
    except ConfigError:
        return choose_device("auto")


def reason_of(error: ValidationError) -> str:
    """The first thing that is wrong with some values."""
    first = error.errors()[0]
    return ".".join([*map(str, first["loc"])] or ["all of it"]) + f": {first['msg'][:1].lower()}{first['msg'][1:]}"


def read_spec(folder: Path) -> InputSpec:
    """What the run folder says of its data; runs of before kept it as task.json."""
    old = folder / "task.json"
    path = old if old.is_file() else folder / "input.json"
    try:
        return from_json(read_json(path))
    except ValueError as error:
        reason = reason_of(error) if isinstance(error, ValidationError) else str(error)
        raise CheckpointError(f"{path} does not describe the inputs of a run ({reason}); restore it.") from None
