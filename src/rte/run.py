"""From settings to a trained method: where the stages are put together, and what a run folder holds.

config.json       the resolved settings             journal.jsonl   what happened, line by line
environment.json  versions, machine, time           checkpoint.pt   the latest state
task.json         classes, image shape, statistics  selected.pt     the best state on held-out noisy data
noise.json        the noise manifest                result.json     the final numbers
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import rte
from rte import nets, registry
from rte.config import RunConfig, digest
from rte.data.statistics import channel_statistics, holdout
from rte.data.types import Dataset
from rte.environment import environment
from rte.errors import CheckpointError, ConfigError
from rte.evaluate.examiner import Examiner
from rte.evaluate.metrics import summarise
from rte.files import read_json, write_json
from rte.methods.base import Method
from rte.methods.base import Task as MethodTask
from rte.noise.inject import Manifest, corrupt
from rte.rng import fold
from rte.train import checkpoint
from rte.train.device import check_precision, choose_device, faster_in_half, keep_memory
from rte.train.distributed import World
from rte.train.journal import Journal
from rte.train.trainer import Observer, Trainer
from rte.views.engine import ViewEngine
from rte.views.loader import Loader

MIXED_SIZE = 64
"""The side that images of differing or large size are brought to, unless views.size says otherwise."""
SAMPLE = 1000
"""How many training images a network may look at before training begins."""


@dataclass(frozen=True)
class Task:
    """What must be known of the data to rebuild a trained method and feed it images."""

    classes: tuple[str, ...]
    channels: int
    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    n: int

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> Task:
        lists = {key: tuple(value) for key, value in tree.items() if isinstance(value, list)}
        return cls(**{**tree, **lists})

    def engine(self, config: RunConfig) -> ViewEngine:
        return ViewEngine(config.views, mean=self.mean, std=self.std, size=self.size, channels=self.channels)


@dataclass(frozen=True)
class Prepared:
    """Data and task of a run, ready to be trained on. `dataset` carries the given, perhaps corrupted, labels."""

    config: RunConfig
    dataset: Dataset
    manifest: Manifest
    task: Task
    train_rows: NDArray[np.int64]
    val_rows: NDArray[np.int64]


def load_dataset(config: RunConfig, data_dir: Path | None) -> Dataset:
    """The dataset a config names, as released."""
    dataset: Dataset = registry.dataset(config.data_name).load(config.data, data_dir)
    return dataset


def prepare(config: RunConfig, dataset: Dataset) -> Prepared:
    """Inject the noise, draw the examples, keep the held-out part aside, take the channel statistics."""
    dataset, manifest = corrupt(dataset, config.noise, config.seed)
    train_rows, val_rows = _rows(dataset.train.y, config)
    if config.train.batch > len(train_rows):
        raise ConfigError(
            f"train.batch = {config.train.batch} is larger than the training set of {len(train_rows)} images; "
            f"set train.batch={max(1, len(train_rows) // 4)} or less."
        )
    images = dataset.train.images
    size = images.size
    if config.views.size is not None:
        size = (config.views.size, config.views.size)
    elif size is None or max(size) > 2 * MIXED_SIZE:
        size = (MIXED_SIZE, MIXED_SIZE)
    mean, std = channel_statistics(images)
    task = Task(dataset.classes, images.channels, size, mean, std, len(train_rows))
    return Prepared(config, dataset, manifest, task, train_rows, val_rows)


def _rows(y: NDArray[np.int64], config: RunConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows held out, of all or of `train.examples` rows."""
    rows = np.arange(len(y), dtype=np.int64)
    if (most := config.train.examples) is not None and most < len(y):
        rows = holdout(y, most / len(y), fold(config.seed, "examples"))[1]
    if not config.train.holdout:
        return rows, rows[:0]
    train, held = holdout(y[rows], config.train.holdout, config.seed)
    return rows[train], rows[held]


def build_method(
    config: RunConfig, task: Task, y: torch.Tensor, device: torch.device, sample: torch.Tensor | None = None
) -> Method:
    """The method with freshly made networks; each network of it starts differently, each run of it the same.

    `sample` are training images for networks that look at some before they begin; not needed to load a state.
    """
    made = 0

    def build() -> torch.nn.Module:
        nonlocal made
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(fold(config.seed, "init", made) >> 1)
            net = nets.build(
                config.net.name,
                channels=task.channels,
                classes=len(task.classes),
                size=task.size,
                dropout=config.net.dropout,
            )
        made += 1
        if sample is not None:
            net.calibrate(sample)
        if config.train.compile:
            net.compile()
        return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

    cls = registry.method(config.method_name)
    return cls(config.method, MethodTask(y, len(task.classes), build)).to(device)


def settled(config: RunConfig, world: World) -> RunConfig:
    """The same settings with a precision that holds on every machine, where `auto` left it to this one."""
    if config.train.precision != "auto":
        return config
    device = choose_device(config.train.device)
    half = world.any([world.first and faster_in_half(device)], device)[0]
    return config.with_train(precision="bf16" if half else "fp32")


def make_trainer(
    prepared: Prepared,
    *,
    save: Callable[[str, dict[str, Any]], None],
    observer: Observer | None = None,
    world: World | None = None,
) -> tuple[Trainer, Examiner]:
    """A trainer at the start of the run, with no journal yet, and the examiner of its method."""
    config, task = settled(prepared.config, world or World()), prepared.task
    device = choose_device(config.train.device)
    check_precision(device, config.train.precision)
    keep_memory()
    torch.backends.cudnn.benchmark = device.type == "cuda"
    engine = task.engine(config)
    train = prepared.dataset.train.take(prepared.train_rows)
    spread = np.linspace(0, len(train) - 1, min(len(train), SAMPLE)).astype(np.int64)  # data may be sorted by class
    sample = next(Loader(train.take(spread).images, train.y[spread], engine, seed=0).plain(SAMPLE))
    method = build_method(config, task, torch.from_numpy(train.y), device, sample)
    pin = device.type == "cuda"
    loader = Loader(train.images, train.y, engine, seed=config.seed, threads=config.train.threads, pin=pin)
    examiner = Examiner(
        prepared.dataset, prepared.train_rows, prepared.val_rows, engine, device, config.train.evaluate_batch
    )
    trainer = Trainer(
        config.train,
        method,
        loader,
        n=len(train),
        seed=config.seed,
        device=device,
        examine=examiner,
        journal=Journal(None),
        save=save,
        observer=observer,
        world=world,
    )
    return trainer, examiner


# ---- run folders

LAST_FOUNDED = "noise.json"
"""Where this file is, a run folder is whole."""


def start(
    config: RunConfig,
    folder: Path,
    *,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    budget: float | None = None,
) -> dict[str, Any]:
    """Train from the beginning in a new folder; returns the final numbers. `budget`: seconds, instead of epochs.

    Under torchrun all processes call this; the first one writes. After an elastic restart they go on from the folder.
    """
    started = time.monotonic()
    world = World.join()
    ours, begun = (world.first and yes for yes in (world.claimed(folder), (folder / LAST_FOUNDED).exists()))
    ours, begun = world.any([ours, begun], choose_device(config.train.device))
    if ours and begun:
        return resume(folder, data_dir=data_dir, observer=observer)
    if world.first and folder.exists() and not ours:
        raise CheckpointError(
            f"the run folder {folder} exists already; choose another with --out, or go on with `rte resume {folder}`."
        )
    config = settled(config, world)
    prepared = prepare(config, load_dataset(config, data_dir))
    if budget is not None:
        from rte.budget import fit_budget

        prepared = replace(prepared, config=fit_budget(prepared, budget, started=started))
    trainer, examiner = _trainer(prepared, folder, observer, world)  # may refuse: before anything is written
    if world.first:
        world.claim(folder)
        _found(folder, prepared, data_dir, again=ours)
    world.wait()
    return _train(prepared, folder, trainer, examiner)


def _found(folder: Path, prepared: Prepared, data_dir: Path | None, *, again: bool) -> None:
    """Make a run folder with everything that is known before the first step; `again`: it may be there, half made."""
    try:
        folder.mkdir(parents=True, exist_ok=again)
    except OSError as error:
        raise CheckpointError(
            f"cannot make the run folder {folder} ({error.strerror}); choose another with --out."
        ) from None
    write_json(folder / "config.json", prepared.config.tree())
    write_json(folder / "environment.json", environment(data_dir))
    write_json(folder / "task.json", asdict(prepared.task))
    write_json(folder / LAST_FOUNDED, prepared.manifest.tree())


def resume(folder: Path, *, data_dir: Path | None = None, observer: Observer | None = None) -> dict[str, Any]:
    """Go on with a run that stopped, exactly where its last checkpoint left it."""
    config = read_config(folder)
    prepared = prepare(config, load_dataset(config, _data_dir(folder, data_dir)))
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
    prepared: Prepared, folder: Path, trainer: Trainer, examiner: Examiner, state: checkpoint.State | None = None
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


def summary(prepared: Prepared, trainer: Trainer, examiner: Examiner) -> dict[str, Any]:
    """The final numbers of a run: accuracies are called `last`, `last5` or `best`, and `best` peeks at the test set."""
    history, config = trainer.history, prepared.config
    out: dict[str, Any] = {
        "data": config.data_name,
        "method": config.method_name,
        "net": config.net.name,
        "seed": config.seed,
        "digest": config.digest,
        "version": rte.__version__,
        "noise": {
            "name": prepared.manifest.name,
            "asked": prepared.manifest.ratio_asked,
            "measured": prepared.manifest.ratio_measured,
            "warning": prepared.manifest.warning,
        },
        "epochs": config.train.epochs,
        "steps": trainer.step,
        "train_seconds": round(trainer.seconds, 2),
        "parameters": sum(p.numel() for p in trainer.method.parameters() if p.requires_grad),
    }
    for name in ("test", "student", "val"):
        if history and name in history[-1]:
            out[name] = {**summarise([entry[name]["top1"] for entry in history]), **history[-1][name]}
    if "val" in out:
        chosen = max(history, key=lambda entry: entry["val"]["top1"])
        out["selected"] = {"epoch": chosen["epoch"], "val": chosen["val"]["top1"]}
        if "test" in chosen:
            out["selected"]["test"] = chosen["test"]["top1"]
    out["memorisation"] = examiner.memorisation(trainer.method)
    return out


def read_config(folder: Path) -> RunConfig:
    """The settings of a run folder."""
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} is no run folder (it has no config.json); give the folder that `rte fit` printed."
        )
    return RunConfig.from_tree(read_json(folder / "config.json"))


def load_method(
    folder: Path, device: torch.device, which: str | None = None, *, y: torch.Tensor | None = None
) -> tuple[Method, RunConfig, Task]:
    """The trained method of a run folder: as selected on held-out noisy data if it was, else as it was last.

    y (N,) are the given labels it was trained on, which only `trust` needs: `reopen` has them.
    """
    config, task = read_config(folder), Task.from_json(read_json(folder / "task.json"))
    name = which or ("selected" if (folder / "selected.pt").exists() else "checkpoint")
    state = checkpoint.load(folder / f"{name}.pt", device)
    method = build_method(config, task, torch.zeros(task.n, dtype=torch.int64) if y is None else y, device)
    method.load_state_dict(state["method"])
    return method.eval(), config, task


def evaluate(folder: Path, *, data_dir: Path | None = None, which: str | None = None) -> dict[str, Any]:
    """Score a trained run again, from its folder and its data."""
    method, examiner = reopen(folder, data_dir=data_dir, which=which)
    return {**examiner(method), "memorisation": examiner.memorisation(method)}


def reopen(folder: Path, *, data_dir: Path | None = None, which: str | None = None) -> tuple[Method, Examiner]:
    """The trained method of a run folder and the examiner of its data."""
    config = read_config(folder)
    device = choose_device(config.train.device)
    prepared = prepare(config, load_dataset(config, _data_dir(folder, data_dir)))
    given = torch.from_numpy(prepared.dataset.train.y[prepared.train_rows])
    method, _, task = load_method(folder, device, which, y=given)
    engine = task.engine(config)
    return method, Examiner(prepared.dataset, prepared.train_rows, prepared.val_rows, engine, device)


def _data_dir(folder: Path, given: Path | None) -> Path | None:
    """The folder datasets are looked for in: the one given now, else the one the run began with."""
    before = read_json(folder / "environment.json").get("data_dir")
    return given or (Path(before) if before else None)
