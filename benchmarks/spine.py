"""RTE against cross-entropy and GCE on CIFAR-10 with 40 % symmetric noise: after equal epochs, and after equal time.

    python benchmarks/spine.py --data-dir DIR --json results/cifar10-sym40.json

Each run lives in a folder under --runs and is skipped when its result is there, so the command can be killed and
called again. For the comparison at equal time, RTE is given as many steps as cost what those of GCE did, with its
schedules fitted to that length; the cost of a step, averaged over the schedule, is measured in turn, so that other
work on the machine slows both alike. The settings are those of a preset, `laptop` unless told, with two strong views in
the second half for RTE; nothing is chosen by looking at the test set.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import mean
from typing import Any

from common import plainly, step_costs, trained

from rte.config import RunConfig, merge, resolve
from rte.files import read_json, write_json

METHODS = ("rte", "ce", "gce")
LATE = {"kind": "steps", "fractions": [0.0, 0.5]}
VIEWS = {"jsd_weight": {**LATE, "values": [0.0, 1.0]}, "ecr_weight": {**LATE, "values": [0.0, 2.0]}}
"""Consistency in the second half, which the preset leaves to longer runs."""


def row(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "epochs": results[0]["epochs"],
        "steps": results[0]["steps"],
        "seeds": [result["seed"] for result in results],
        "last": [round(result["test"]["last"], 4) for result in results],
        "mean_last": round(mean(result["test"]["last"] for result in results), 4),
        "memorised": round(mean(result["memorisation"]["memorised"] for result in results), 4),
        "train_seconds": round(mean(result["train_seconds"] for result in results), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs/spine"))
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.4)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    def config(method: str, seed: int = 0, **train: int) -> RunConfig:
        options = {"data": {"name": "cifar10"}, "noise": {"name": "symmetric", "ratio": args.noise}, "seed": seed}
        length = {"epochs": args.epochs, **train}
        own = VIEWS if method == "rte" else {}
        return resolve(args.preset, merge(options, {"method": {"name": method, **own}, "train": length}))

    def results(name: str, method: str, **train: int) -> list[dict[str, Any]]:
        folder = args.runs / f"{name.replace(', ', '-').replace(' ', '-')}-{args.epochs}"
        return [trained(folder / f"s{s}", config(method, s, **train), args.data_dir) for s in range(args.seeds)]

    found = {name: results(name, name) for name in METHODS}
    if not (args.runs / "costs.json").exists():
        write_json(args.runs / "costs.json", step_costs({name: config(name) for name in METHODS}, args.data_dir))
    costs = read_json(args.runs / "costs.json")
    rows = [{**row(name, list_), "step_cost": round(costs[name] / costs["rte"], 3)} for name, list_ in found.items()]
    whole = found["gce"][0]["steps"]
    steps = max(1, round(whole * costs["gce"] / costs["rte"]))
    epochs = math.ceil(steps / (whole / args.epochs))
    rows.append({**row("rte, time of gce", results("rte, time of gce", "rte", steps=steps, epochs=epochs))})

    print(f"{'':24}{'steps':>8}{'last %':>9}{'memorised %':>13}{'seconds':>9}")
    for entry in rows:
        figures = f"{100 * entry['mean_last']:9.2f}{100 * entry['memorised']:13.1f}{entry['train_seconds']:9.0f}"
        print(f"{entry['name']:24}{entry['steps']:8}{figures}")
    if args.json:
        head = {
            "data": "cifar10",
            "noise": f"symmetric {args.noise}",
            "preset": args.preset,
            "net": config("rte").net.name,
        }
        write_json(args.json, {**head, "rows": rows})


if __name__ == "__main__":
    plainly(main)
