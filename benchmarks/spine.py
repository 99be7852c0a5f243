"""RTE against cross-entropy and GCE on CIFAR-10 with 40 % symmetric noise: after equal epochs, and after equal time.

    python benchmarks/spine.py --data-dir DIR --json results/cifar10-sym40.json

Each run lives in a folder under --runs and is skipped when its result is there, so the command can be killed and called
again. The rows called "equal time" give the cheaper methods as many epochs as fit into the training time that RTE took
in this very benchmark. The settings are those of the preset `default`; nothing is chosen by looking at the test set.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import mean
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
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    def results(name: str, method: dict[str, Any], epochs: int) -> list[dict[str, Any]]:
        options = {
            "data": {"name": "cifar10"},
            "noise": {"name": "symmetric", "ratio": args.noise},
            "train": {"epochs": epochs},
            "method": method,
        }
        folder = args.runs / f"{name}-{epochs}"
        return [trained(folder / f"s{s}", {**options, "seed": s}, args.data_dir) for s in range(args.seeds)]

    rows = []
    rte = results("rte", {"name": "rte"}, args.epochs)
    rows.append(row("rte", rte))
    for name, method in {
        "ce": {"name": "ce"},
        "gce": {"name": "gce"},
        "gce with teacher": {"name": "gce", "decay": 0.99},
    }.items():
        label = name.replace(" ", "-")
        same = results(label, method, args.epochs)
        rows.append(row(name, same))
        share = mean(r["train_seconds"] for r in rte) / mean(r["train_seconds"] for r in same)
        rows.append(row(f"{name}, equal time", results(label, method, math.floor(args.epochs * share))))

    print(f"{'':28}{'epochs':>8}{'last %':>9}{'memorised %':>13}{'seconds':>9}")
    for entry in rows:
        figures = f"{100 * entry['mean_last']:9.2f}{100 * entry['memorised']:13.1f}{entry['train_seconds']:9.0f}"
        print(f"{entry['name']:28}{entry['epochs']:8}{figures}")
    if args.json:
        write_json(args.json, {"data": "cifar10", "noise": f"symmetric {args.noise}", "net": "compact", "rows": rows})


if __name__ == "__main__":
    main()
