"""From settings to a trainer: where the stages are put together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte import registry
from rte.config import RunConfig
from rte.data.check.findings import HardlyTwo, alike
from rte.data.statistics import holdout
from rte.data.types import Dataset
from rte.errors import ConfigError, Unsuitable
from rte.evaluate.examiner import Examiner
from rte.methods.base import Method, Task
from rte.nets.base import Net
from rte.noise.inject import Manifest, corrupt
from rte.noise.trusted import trusted_rows
from rte.rng import fold
from rte.run.decoded import CACHE, read_once
from rte.run.embedded import embedded, with_model
from rte.run.frozen import Keep, seen
from rte.run.inputs import InputSpec, describe, suited
from rte.run.pretrained import recognised, trained_network
from rte.train.device import check_precision, choose_device, faster_in_half, keep_memory, set_arithmetic
from rte.train.distributed import World
from rte.train.journal import Journal
from rte.train.margins import mark
from rte.train.timeline import Timeline
from rte.train.trainer import Observer, Trainer
from rte.views.loader import Loader

LOOKED_AT = 10_000
"""Training examples that a run by the clock is asked about at its end: which of their labels it has memorised."""
SAMPLE = 1000
"""How many training images a network may look at before training begins."""


@dataclass(frozen=True)
class Prepared:
    """Data of a run, ready to be trained on. `dataset` carries the given, perhaps corrupted, labels."""

    config: RunConfig
    dataset: Dataset
    manifest: Manifest
    spec: InputSpec
    train_rows: NDArray[np.int64]
    val_rows: NDArray[np.int64]
    trusted: NDArray[np.int64]
    """Positions in `train_rows` of examples whose labels are known to be right."""


def load_dataset(config: RunConfig, data_dir: Path | None) -> Dataset:
    """The dataset a config names, as released."""
    dataset: Dataset = registry.dataset(config.data_name).load(config.data, data_dir)
    for names in alike(dataset.classes):
        said = " and ".join(f"'{name}'" for name in names)
        warnings.warn(f"the classes {said} differ only by case or blanks; are they one?", HardlyTwo, stacklevel=2)
    return dataset


def prepare(config: RunConfig, dataset: Dataset, keep: Keep | None = None) -> Prepared:
    """Inject the noise, draw the examples, keep the held-out part aside, take the channel statistics.

    keep: where features are kept, if the run sees its images but once, or is on texts.
    """
    config = with_model(recognised(config))
    beside = None if keep is None or keep.cache is None else keep.cache.with_name(CACHE)
    config, dataset = read_once(config, dataset, beside, None if keep is None else keep.tell)
    injected = config.noise.name not in ("none", "labels")
    trusted = trusted_rows(dataset, config.train.trusted, injected=injected, seed=config.seed)
    _check_trusted(config, trusted)
    if injected:  # drawn first, so that the share of wrong labels among them is the one asked for
        dataset, trusted = _drawn(dataset, config, trusted)
    dataset, manifest = corrupt(dataset, config.noise, config.seed, spared=trusted)
    if not injected:
        dataset, trusted = _drawn(dataset, config, trusted)
    train_rows, val_rows = _rows(dataset, config, trusted)
    if config.train.batch > len(train_rows):
        raise ConfigError(
            f"train.batch = {config.train.batch} is larger than the training set of {len(train_rows)} images; "
            f"set train.batch={max(1, len(train_rows) // 4)} or less."
        )
    dataset = embedded(config, seen(config, dataset, keep), keep)
    spec = describe(config, dataset, len(train_rows))
    return Prepared(
        suited(config, spec),
        dataset,
        manifest,
        spec,
        train_rows,
        val_rows,
        np.searchsorted(train_rows, trusted).astype(np.int64),
    )


def _drawn(dataset: Dataset, config: RunConfig, trusted: NDArray[np.int64]) -> tuple[Dataset, NDArray[np.int64]]:
    """The dataset with `train.examples` examples alone, trusted ones among them, and the new rows of those."""
    most, y = config.train.examples, dataset.train.y
    if most is None or most >= len(y):
        return dataset, trusted
    others = np.setdiff1d(np.arange(len(y), dtype=np.int64), trusted)
    share = max(0, most - len(trusted)) / len(others)
    rows = np.union1d(trusted, others[holdout(y[others], share, fold(config.seed, "examples"))[1]])
    return dataset.only(rows), np.searchsorted(rows, trusted).astype(np.int64)


def _rows(
    dataset: Dataset, config: RunConfig, trusted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows held out; trusted ones are always trained on."""
    y, groups = dataset.train.y, dataset.groups
    rows = np.setdiff1d(np.arange(len(y), dtype=np.int64), trusted)
    held = rows[:0]
    if config.train.holdout:
        together = None if groups is None else groups[rows]
        train, out = holdout(y[rows], config.train.holdout, config.seed, together)
        rows, held = rows[train], rows[out]
    return np.union1d(rows, trusted), held


def _check_trusted(config: RunConfig, trusted: NDArray[np.int64]) -> None:
    if "trusted examples" in registry.method(config.method_name).needs and not len(trusted):
        raise ConfigError(
            f"the method {config.method_name} needs some examples whose labels are known to be right; set "
            "train.trusted to their number (where noise is injected) or to a text file that names them."
        )


def build_method(
    config: RunConfig,
    spec: InputSpec,
    y: torch.Tensor,
    device: torch.device,
    sample: Callable[[], torch.Tensor] | None = None,
    trusted: torch.Tensor | None = None,
) -> Method:
    """The method with freshly made networks; each network of it starts differently, each run of it the same.

    `sample()` are training images for networks that look at some before they begin; not needed to load a state.
    """

    def build(k: int = 0) -> torch.nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(fold(config.seed, "init", k) >> 1)
            net = spec.network(config) if sample is None else trained_network(config, spec)
        if "hidden layers" in cls.needs and not getattr(net, "hidden", True):
            raise Unsuitable(
                f"the method {config.method_name} acts on how features are learnt, but here they are the vectors "
                "themselves; give it a network with hidden layers, such as net.name=mlp, or train more than the head."
            )
        if sample is not None and type(net).calibrate is not Net.calibrate:
            net.calibrate(sample())
        if config.train.compile:
            net.compile()
        return mark(net.to(memory_format=torch.channels_last))  # type: ignore[call-overload]

    cls = registry.method(config.method_name)
    known = torch.zeros(0, dtype=torch.int64) if trusted is None else trusted
    with torch.random.fork_rng(devices=[]):  # for layers that are the method's own
        torch.manual_seed(fold(config.seed, "method") >> 1)
        method = cls(config.method, Task(y, len(spec.classes), build, known, loading=sample is None))
    return method.to(device)


def settled(config: RunConfig, world: World) -> RunConfig:
    """The same settings with a precision that holds on every machine, where `auto` left it to this one."""
    if config.train.precision != "auto":
        return config
    device = choose_device(config.train.device)
    half = world.any([world.first and faster_in_half(device)])[0]
    return config.with_train(precision="bf16" if half else "fp32")


def make_trainer(
    prepared: Prepared,
    *,
    save: Callable[[str, dict[str, Any]], None],
    observer: Observer | None = None,
    world: World | None = None,
    timeline: Timeline | None = None,
) -> tuple[Trainer, Examiner]:
    """A trainer at the start of the run, with no journal yet, and the examiner of its method."""
    config, spec = settled(prepared.config, world or World()), prepared.spec
    device = choose_device(config.train.device)
    check_precision(device, config.train.precision)
    keep_memory()
    set_arithmetic(config.train.precision, deterministic=config.train.deterministic)
    train = prepared.dataset.train.take(prepared.train_rows)
    viewer = spec.viewer(config, train.images)
    spread = np.linspace(0, len(train) - 1, min(len(train), SAMPLE)).astype(np.int64)  # data may be sorted by class
    first = Loader(train.take(spread).images, train.y[spread], viewer, seed=0)
    sample = cache(lambda: next(first.plain(SAMPLE)))
    trusted = torch.from_numpy(prepared.trusted)
    method = build_method(config, spec, torch.from_numpy(train.y), device, sample, trusted)
    pin = device.type == "cuda"
    loader = Loader(train.images, train.y, viewer, seed=config.seed, threads=config.train.threads, pin=pin)
    examiner = Examiner(
        prepared.dataset,
        prepared.train_rows,
        prepared.val_rows,
        viewer,
        device,
        batch=config.train.evaluate_batch,
        threads=config.train.threads,
        most=None if config.train.budget is None else LOOKED_AT,  # the time is for training
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
        timeline=timeline,
    )
    return trainer, examiner
