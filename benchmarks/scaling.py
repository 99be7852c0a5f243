"""Steps per second of two processes with one thread each, against one process with one thread and with two.

    python benchmarks/scaling.py --json results/scaling.json
    python tools/measured.py docs                          # puts the numbers on the page

All three train RTE with the same batch on random images of CIFAR's size, and take turns within each round while the
others wait, so that other work on the machine slows all alike. A ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import socket
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from rte.config import resolve
from rte.data.arrays import from_arrays
from rte.files import write_json
from rte.run.build import make_trainer, prepare
from rte.train.distributed import World

TEAMS = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1)}
"""name -> processes, threads in each; the first is what the others are compared with."""

WARM = 3


def work(pipe: Connection, rank: int, size: int, port: int, threads: int, setting: dict[str, Any]) -> None:
    """One process of a team: does as many steps as it is told to, and says how long they took."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(size)}
    os.environ.update(address)
    torch.set_num_threads(threads)
    world = World.join()
    rng, batch = np.random.default_rng(0), setting["batch"]
    images = rng.integers(0, 256, (batch * (setting["total"] + 2), 32, 32, 3), dtype=np.uint8)
    options = {
        "data": {"name": "arrays", "path": "random"},
        "method": {"name": "rte", "views": setting["views"]},
        "net": {"name": setting["net"]},
        "train": {"batch": batch, "device": "cpu"},
    }
    config = resolve("default", options)
    prepared = prepare(config, from_arrays(images, rng.integers(0, 10, len(images))))
    trainer, _ = make_trainer(prepared, save=lambda name, state: None, world=world)
    going = trainer.steps()
    while steps := pipe.recv():
        world.wait()
        start = time.perf_counter()
        for _ in range(steps):
            next(going)
        world.wait()
        pipe.send(time.perf_counter() - start)
    going.close()


def team(context: SpawnContext, size: int, threads: int, setting: dict[str, Any]) -> list[Connection]:
    """Start the processes of a team; returns a line to each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = []
    for rank in range(size):
        ours, theirs = context.Pipe()
        context.Process(target=work, args=(theirs, rank, size, port, threads, setting), daemon=True).start()
        lines.append(ours)
    return lines


def do(lines: list[Connection], steps: int) -> float:
    """Seconds per step of a team."""
    for line in lines:
        line.send(steps)
    return float(max(line.recv() for line in lines)) / steps


def measure(rounds: int, steps: int, setting: dict[str, Any]) -> dict[str, list[float]]:
    """Seconds per step of each team in each round."""
    context = get_context("spawn")
    teams = {name: team(context, *shape, setting) for name, shape in TEAMS.items()}
    for lines in teams.values():
        do(lines, WARM)  # compiles, or loads what was compiled
    times: dict[str, list[float]] = {name: [] for name in teams}
    for _ in range(rounds):
        for name, lines in teams.items():
            times[name].append(do(lines, steps))
    for lines in teams.values():
        for line in lines:
            line.send(0)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="compact")
    parser.add_argument("--batch", type=int, default=64, help="of all processes together")
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6, help="in each turn")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    setting = {"net": args.net, "batch": args.batch, "views": args.views}
    times = measure(args.rounds, args.steps, {**setting, "total": WARM + args.rounds * args.steps})
    base, rows = times[next(iter(TEAMS))], []
    print(f"{'':28}{'s per step':>11}{'speed-up':>10}{'lowest':>8}{'highest':>9}")
    for name, own in times.items():
        ratios = sorted(a / b for a, b in zip(base, own, strict=True))
        row = {
            "name": name,
            "step_seconds": round(median(own), 4),
            "speedup": round(median(ratios), 3),
            "lowest": round(ratios[0], 3),
            "highest": round(ratios[-1], 3),
        }
        rows.append(row)
        print(f"{name:28}{row['step_seconds']:11.3f}{row['speedup']:10.2f}{row['lowest']:8.2f}{row['highest']:9.2f}")
    if args.json:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        shape = {"rounds": args.rounds, "steps": args.steps, "cores": cores, "versions": versions}
        write_json(args.json, {**setting, **shape, "rows": rows})


if __name__ == "__main__":
    main()
