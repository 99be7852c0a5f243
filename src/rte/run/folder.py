"""What a run folder holds, and how it is read again.

config.json       the resolved settings             journal.jsonl   what happened, line by line
environment.json  versions, machine, time           checkpoint.pt   the latest state
input.json        classes, image shape, statistics  selected.pt     the best state on held-out noisy data
noise.json        the noise manifest                result.json     the final numbers
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from rte.code import CodeChanged, changes
from rte.config import RunConfig
from rte.errors import CheckpointError, UntrustedCode
from rte.evaluate.examiner import Examiner
from rte.files import read_json, write_json
from rte.methods.base import Method
from rte.run.build import Prepared, build_method, load_dataset, prepare
from rte.run.environment import environment
from rte.run.inputs import InputSpec, from_json
from rte.train import checkpoint
from rte.train.device import choose_device

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
    write_json(folder / LAST_FOUNDED, prepared.manifest.tree())


def read_config(folder: Path, *, trust_code: bool = False) -> RunConfig:
    """The settings of a run folder. Where they name code that is not part of the package, it runs with `trust_code`.

    A warning says where such code is not what the run began with.
    """
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} is no run folder (it has no config.json); give the folder that `rte fit` printed."
        )
    try:
        config = RunConfig.from_tree(read_json(folder / "config.json"), trust_code)
    except UntrustedCode as error:
        raise UntrustedCode(f"{folder}: {error}") from None
    warn_of_changes(folder, config)
    return config


def warn_of_changes(folder: Path, config: RunConfig) -> None:
    """Say where code that is not part of the package is not what the folder recorded of it."""
    if now := config.code:
        for text in changes(read_json(folder / "environment.json").get("code", ()), now):
            warnings.warn(text, CodeChanged, stacklevel=1)


def load_method(
    folder: Path,
    device: torch.device,
    which: str | None = None,
    *,
    y: torch.Tensor | None = None,
    trusted: torch.Tensor | None = None,
    trust_code: bool = False,
) -> tuple[Method, RunConfig, InputSpec]:
    """The trained method of a run folder: as selected on held-out noisy data if it was, else as it was last.

    y (N,) are the given labels it was trained on and `trusted` the positions of those known to be right, which only
    `trust` and further training need: `reopen` has them.
    """
    config, spec = read_config(folder, trust_code=trust_code), read_spec(folder)
    name = which or ("selected" if (folder / "selected.pt").exists() else "checkpoint")
    state = checkpoint.load(folder / f"{name}.pt")
    given = torch.zeros(spec.n, dtype=torch.int64) if y is None else y
    method = build_method(config, spec, given, device, trusted=trusted)
    method.load_state_dict(state["method"])
    return method.eval(), config, spec


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
    device = choose_device(config.train.device)
    prepared = prepare(config, load_dataset(config, data_folder(folder, data_dir)))
    given = torch.from_numpy(prepared.dataset.train.y[prepared.train_rows])
    method, _, spec = load_method(folder, device, which, y=given, trusted=torch.from_numpy(prepared.trusted))
    viewer, rows = spec.viewer(config), (prepared.train_rows, prepared.val_rows)
    batch, threads = config.train.evaluate_batch, config.train.threads
    return method, Examiner(prepared.dataset, *rows, viewer, device, batch=batch, threads=threads)


def data_folder(folder: Path, given: Path | None) -> Path | None:
    """The folder datasets are looked for in: the one given now, else the one the run began with."""
    before = read_json(folder / "environment.json").get("data_dir")
    return given or (Path(before) if before else None)


def read_spec(folder: Path) -> InputSpec:
    """What the run folder says of its data; runs of before kept it as task.json."""
    old = folder / "task.json"
    return from_json(read_json(old if old.is_file() else folder / "input.json"))
