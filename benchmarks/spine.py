"""RTE against cross-entropy and GCE on CIFAR-10 with 40 % symmetric noise: after equal epochs, and after equal time.

    python benchmarks/spine.py --data-dir DIR --json results/cifar10-sym40.json

Each run lives in a folder under --runs and is skipped when its result is there, so the command can be killed and
called again. For the comparison at equal time, RTE is given as many epochs as cost what those of GCE did (at least
one), each with its schedules fitted to its own length; the cost of a step is measured by turns, so that other work on
the machine slows both alike. The settings are those of the preset `default`; nothing is
chosen by looking at the test set.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

from rte import run
from rte.config import resolve
from rte.errors import CheckpointError
from rte.files import read_json, write_json


def trained(folder: Path, options: dict[str, Any], data_dir: Path | None) -> dict[str, Any]:
    """The result of a run: read if it is there, continued if it was begun, else made."""
    if (folder / "result.json").exists():
        result: dict[str, Any] = read_json(folder / "result.json")
        return result
    print(f"{folder} ...", flush=True)
    try:
        return run.start(resolve("default", options), folder, data_dir=data_dir)
    except CheckpointError:
        return run.resume(folder, data_dir=data_dir)


def step_costs(options: dict[str, dict[str, Any]], data_dir: Path | None, rounds: int = 12) -> dict[str, float]:
    """Median seconds of a step of each run, measured in turns."""
    steps, times = {}, {name: [] for name in options}
    for name, option in options.items():
        config = resolve("default", option)
        prepared = run.prepare(config, run.load_dataset(config, data_dir))
        steps[name] = run.make_trainer(prepared, save=lambda name, state: None)[0].steps()
    for _ in range(rounds):
        for name, going in steps.items():
            start = perf_counter()
            next(going)
            next(going)
            times[name].append((perf_counter() - start) / 2)
    return {name: median(values[2:]) for name, values in times.items()}


def row(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "epochs": results[0]["epochs"],
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
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.4)
    parser.add_argument("--net", default="compact")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    methods: dict[str, dict[str, Any]] = {
        "rte": {"name": "rte"},
        "ce": {"name": "ce"},
        "gce": {"name": "gce"},
    }
    options = {
        name: {
            "data": {"name": "cifar10"},
            "noise": {"name": "symmetric", "ratio": args.noise},
            "method": method,
            "net": {"name": args.net},
        }
        for name, method in methods.items()
    }

    def results(name: str, epochs: int) -> list[dict[str, Any]]:
        folder = args.runs / f"{name.replace(' ', '-')}-{epochs}"
        return [
            trained(folder / f"s{s}", {**options[name], "train": {"epochs": epochs}, "seed": s}, args.data_dir)
            for s in range(args.seeds)
        ]

    same_epochs = {name: results(name, args.epochs) for name in methods}
    if not (args.runs / "costs.json").exists():
        write_json(args.runs / "costs.json", step_costs(options, args.data_dir))
    costs = read_json(args.runs / "costs.json")
    rows = [{**row(name, found), "step_cost": costs[name] / costs["rte"]} for name, found in same_epochs.items()]
    epochs = max(1, round(args.epochs * costs["gce"] / costs["rte"]))
    rows.append({**row("rte, time of gce", results("rte", epochs)), "step_cost": 1.0})

    print(f"{'':30}{'epochs':>8}{'last %':>9}{'memorised %':>13}{'seconds':>9}")
    for entry in rows:
        figures = f"{100 * entry['mean_last']:9.2f}{100 * entry['memorised']:13.1f}{entry['train_seconds']:9.0f}"
        print(f"{entry['name']:30}{entry['epochs']:8}{figures}")
    if args.json:
        write_json(args.json, {"data": "cifar10", "noise": f"symmetric {args.noise}", "net": args.net, "rows": rows})


if __name__ == "__main__":
    main()
