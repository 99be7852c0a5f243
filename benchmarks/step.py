"""The time of an RTE step against its floor: the student on (1 + V) B images, forward and back, the teacher on B.

    python benchmarks/step.py --data-dir DIR --json results/step.json

A step is everything the trainer does: views made and waited for, losses, optimiser, moving average, journal. The floor
is the bare network on tensors that are already there. Both are timed in turn in one process, so that other work on the
machine slows both alike; reported is the median over rounds of their ratio.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import torch
from common import plainly

from rte.config import resolve
from rte.files import write_json
from rte.run.build import load_dataset, make_trainer, prepare
from rte.train.trainer import Trainer


def endless(trainer: Trainer) -> Iterator[None]:
    return chain.from_iterable(trainer.steps() for _ in repeat(None))


def floor(trainer: Trainer, batch: int, strong: int, size: tuple[int, int], channels: int) -> Callable[[], None]:
    """The least that a step computes."""
    student, teacher = trainer.method.student, trainer.method.teacher
    views = torch.randn((1 + strong) * batch, channels, *size).contiguous(memory_format=torch.channels_last)
    parameters = [p for p in student.parameters() if p.requires_grad]

    def once() -> None:
        student.train()
        for p in parameters:
            p.grad = None
        with torch.inference_mode():
            teacher(views[:batch])
        student(views).square().mean().backward()

    return once


def seconds(work: Callable[[], object], times: int) -> float:
    started = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - started) / times


def measure(net: str, strong: int, batch: int, rounds: int, data_dir: Path | None) -> dict[str, object]:
    settings = {"data": {"name": "cifar10"}, "net": {"name": net}, "train": {"batch": batch}}
    config = resolve("default", {**settings, "method": {"name": "rte", "views": strong}})
    prepared = prepare(config, load_dataset(config, data_dir))
    trainer, _ = make_trainer(prepared, save=lambda name, state: None)
    steps = endless(trainer)
    bare = floor(trainer, batch, strong, prepared.spec.size, prepared.spec.channels)
    for _ in range(3):
        next(steps)
        bare()
    pairs = [(seconds(lambda: next(steps), 2), seconds(bare, 2)) for _ in range(rounds)]
    ratios = [step / least for step, least in pairs]
    low, _, high = quantiles(ratios, n=4)
    return {
        "net": net,
        "views": strong,
        "batch": batch,
        "ratio": round(median(ratios), 4),
        "quartiles": [round(low, 4), round(high, 4)],
        "step_seconds": round(median(step for step, _ in pairs), 4),
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--nets", default="compact,wrn-16-2,wrn-28-2")
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for net in args.nets.split(","):
        rows.append(measure(net, args.views, args.batch, args.rounds, args.data_dir))
        print(f"{net:12} step / floor {rows[-1]['ratio']}  quartiles {rows[-1]['quartiles']}", flush=True)
    if args.json:
        write_json(args.json, {"threads": torch.get_num_threads(), "rows": rows})


if __name__ == "__main__":
    plainly(main)
