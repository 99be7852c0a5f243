"""How much of a training step is spent waiting for data, and what the views cost beside the network.

    python benchmarks/feeding.py --json results/feeding.json

For each network and N*, a real trainer runs RTE on random images of CIFAR's size. Three things are measured in one run:
the time of a step, the time of it in which the trainer waited for a batch, and, alternating with it, the CPU time that
making the views takes on its own, as a share of the CPU time of the whole step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from rte.config import resolve
from rte.data.arrays import from_arrays
from rte.files import write_json
from rte.methods.base import Progress
from rte.run.build import make_trainer, prepare
from rte.views.batch import Batch
from rte.views.loader import Loader, Request


class Clock(Loader):
    """A loader that adds up how long its batches kept the consumer waiting."""

    waited = 0.0

    def batches(self, requests: Iterable[Request]) -> Iterator[Batch]:
        inner = super().batches(requests)
        while True:
            start = time.perf_counter()
            batch = next(inner, None)
            self.waited += time.perf_counter() - start
            if batch is None:
                return
            yield batch


def measure(net: str, views: int, batch: int, steps: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (batch * (steps + 4), 32, 32, 3), dtype=np.uint8)
    dataset = from_arrays(images, rng.integers(0, 10, len(images)))
    options = {
        "data": {"name": "arrays", "path": "random"},
        "method": {"name": "rte", "views": views},
        "net": {"name": net},
        "train": {"batch": batch},
    }
    config = resolve("default", options)
    prepared = prepare(config, dataset)
    trainer, _ = make_trainer(prepared, save=lambda name, state: None)
    loader = Clock(trainer.loader.source, trainer.loader.y, trainer.loader.viewer, seed=0, threads=config.train.threads)
    trainer.loader = loader
    plan, index = trainer.method.views(Progress(0, 1)), np.arange(batch)
    walls, waits, step_cpu, view_cpu = [], [], [], []
    going = trainer.steps()
    for _ in range(3):
        next(going)
    for _ in range(steps):
        waited, wall, cpu = loader.waited, time.perf_counter(), time.process_time()
        next(going)
        walls.append(time.perf_counter() - wall)
        waits.append(loader.waited - waited)
        step_cpu.append(time.process_time() - cpu)
        cpu = time.thread_time()
        loader.viewer.render(images[index], index, seed=1, epoch=0, plan=plan)
        view_cpu.append(time.thread_time() - cpu)
    going.close()
    return {
        "net": net,
        "views": views,
        "batch": batch,
        "step_seconds": median(walls),
        "waiting": sum(waits) / sum(walls),
        "views_share_of_cpu": median(view_cpu) / median(step_cpu),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--nets", default="compact,wrn-28-2")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    print(f"{'network':12}{'N*':>4}{'step s':>9}{'waiting %':>11}{'views, % of CPU':>17}")
    for net in args.nets.split(","):
        for views in (2, 8):
            row = measure(net, views, args.batch, args.steps)
            rows.append(row)
            shares = f"{100 * row['waiting']:11.2f}{100 * row['views_share_of_cpu']:17.2f}"
            print(f"{net:12}{views:4}{row['step_seconds']:9.3f}{shares}", flush=True)
    if args.json:
        write_json(args.json, {"rows": rows})


if __name__ == "__main__":
    main()
