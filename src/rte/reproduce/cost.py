"""What a grid will take, before it starts: floating-point operations, and hours from a stated or a measured rate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch

from rte import nets, registry
from rte.config import RunConfig
from rte.files import read_json
from rte.methods.base import Method, Predict, Progress, Task
from rte.reproduce.measure import taken
from rte.reproduce.plan import POPULATION, Job
from rte.reproduce.runner import state

V100 = 9e12
"""FLOP/s that a V100 is assumed to keep up in fp32: 380 images/s of ResNet-50 trained, 1,100/s predicted."""

SHAPES = {  # training examples, test images, side, channels, classes
    "cifar10": (50_000, 10_000, 32, 3, 10),
    "cifar100": (50_000, 10_000, 32, 3, 100),
    "digits": (1_297, 500, 8, 1, 10),
    "imagenet": (1_281_167, 50_000, 224, 3, 1000),
    "webvision": (65_944, 2_500, 224, 3, 50),
    "food101n": (305_268, 25_250, 224, 3, 101),
}
LABELS = 2048
"""How many made-up labels a method gets that is only asked for its plans: its tables may be large otherwise."""
CORRUPTED = 75
"""Sets of test images that an mCE takes."""
SURE = 20.0
"""How far a logit that agrees is above the others."""
BLANK = 8
"""Features that are made up for each of them."""
SAMPLES = 8
"""Epochs at which the number of views is looked up: schedules may change it."""


@dataclass(frozen=True)
class Estimate:
    """Runs in all, runs still to do, and the operations these will take."""

    runs: int
    todo: int
    flops: float
    unknown: int

    def hours(self, rate: float) -> float:
        return self.flops / rate / 3600


def estimate(jobs: Sequence[Job], out: Path) -> Estimate:
    """The cost of what is not there yet; a run that is half done counts in full."""
    flops, todo, unknown = 0.0, 0, 0
    for job in jobs:
        there = state(job, out)
        if there.complete or job.kind == "counts":
            continue
        todo += 1
        if job.config.data_name not in SHAPES:
            unknown += 1
            continue
        if not there.trained:
            flops += training(job.config) * (POPULATION if job.kind == "pbt" else 1)
        for name in job.measures - taken(out / job.folder).keys():
            flops += measuring(job.config, name)
    return Estimate(len(jobs), todo, flops, unknown)


def training(config: RunConfig) -> float:
    """FLOPs of a run: what the method says that an example costs, for all that its passes see, and the evaluations."""
    n, method, forward = _prepared(config)
    epochs, total = config.train.epochs, 0.0
    for at in range(min(SAMPLES, epochs)):
        t = Progress(at * epochs // min(SAMPLES, epochs), epochs)
        if "trusted examples" not in method.needs:  # a fit on them would take longer than the answer is worth
            method.epoch_start(t, partial(_guesses, method.y))  # phases of a run are decided here
        plan, examples = method.views(t), 0.0
        for each in method.passes(t):
            seen = n if each.index is None else n * len(each.index) / len(method.y)
            if each.second is not None and len(each.second):
                rows = (each.second_batch or config.train.batch) / (each.batch or config.train.batch)
                seen *= 1 + rows * (plan.second or plan).total / plan.total
            examples += seen
        total += method.cost(t) * examples * forward / min(SAMPLES, epochs)
    tests = epochs / config.train.evaluate_every * SHAPES[config.data_name][1]
    return total * epochs + tests * forward * (1 + len(method.networks()))


def measuring(config: RunConfig, name: str) -> float:
    """FLOPs of a measurement on a trained run."""
    n, _, forward = _prepared(config)
    return forward * {"mce": CORRUPTED * SHAPES[config.data_name][1], "losses": n}.get(
        name, SHAPES[config.data_name][1]
    )


def _prepared(config: RunConfig) -> tuple[int, Method, float]:
    """Training examples, the method as far as its plans go, and FLOPs of a forward pass of an image."""
    n, _, side, channels, classes = SHAPES[config.data_name]
    n = min(n, config.train.examples or n)
    side = getattr(config.views, "size", None) or side
    labels = torch.arange(min(n, max(LABELS, 2 * classes))) % classes
    cls = registry.method(config.method_name)
    trusted = torch.arange(len(labels) // 10 if "trusted examples" in cls.needs else 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        method = cls(config.method, Task(labels, classes, lambda k=0: Blank(classes), trusted=trusted))
    return n, method, _forward(config.net.name, channels, classes, (side, side))


class Blank(nets.Net):
    """A network that makes features up: methods whose plans are asked for look at some."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = torch.nn.Linear(BLANK, classes)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return torch.randn(len(x), BLANK)


def _guesses(y: torch.Tensor, predict: Predict, *, reported: bool = False) -> torch.Tensor:
    """What a method sees of made-up examples: features as they come, and predictions that agree with every label."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = predict(torch.zeros(len(y), 1))
    return found.scatter_add(1, y[:, None], torch.full((len(y), 1), SURE)) if found.shape[1] > int(y.max()) else found


@cache
def _forward(name: str, channels: int, classes: int, size: tuple[int, int]) -> float:
    """FLOPs of a network's forward pass of an image; a grid asks for few networks many times."""
    with torch.device("meta"):
        net = nets.build(name, channels=channels, classes=classes, size=size)
    return 2.0 * nets.multiply_adds(net, size, channels)


def rate_here(jobs: Sequence[Job], out: Path) -> tuple[float, str]:
    """FLOP/s of this machine: of the grid's finished runs if there are any, else of a few timed steps."""
    spent = flops = 0.0
    for job in jobs:
        if job.kind == "run" and job.config.data_name in SHAPES and state(job, out).trained:
            spent += read_json(out / job.folder / "result.json")["train_seconds"]
            flops += training(job.config)
    if spent:
        return flops / spent, "the runs that are done"
    job = next(job for job in jobs if job.kind != "counts" and job.config.data_name in SHAPES)
    return _timed(job.config), "three timed steps"


def _timed(config: RunConfig, batch: int = 128) -> float:
    """FLOP/s of the network's training steps, with weights and images in channels_last as in a run."""
    _, _, side, channels, classes = SHAPES[config.data_name]
    size = (getattr(config.views, "size", None) or side,) * 2
    net = registry.network(config.net.name)(channels=channels, classes=classes, size=size)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.rand(batch, channels, *size).to(memory_format=torch.channels_last)
    best = float("inf")
    for _ in range(4):  # the first warms up
        began = time.perf_counter()
        net(x).sum().backward()
        best = min(best, time.perf_counter() - began)
    return 3 * 2.0 * nets.multiply_adds(net, size, channels) * batch / best
