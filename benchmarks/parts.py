"""The preset `laptop` without each of its parts, several seeds, at equal time: what each part brings.

    python benchmarks/parts.py --data-dir DIR --json results/parts.json
    python tools/measured.py docs                          # puts the numbers on the page

`auto` on CIFAR-10 with a fifth of the training images held out with their noisy labels, by which parts are judged;
test accuracy is reported beside it. The run with all parts has as many epochs as five minutes on two cores have with
all images. Where a step costs more or less without a part, that is measured first, in turn, and the length set to take
the same time. Lengths are kept in OUT/steps.json, so that the runs may share the machine: with OMP_NUM_THREADS=1, call
the command twice with --shard 1/2 and 2/2. A seed is another start and order, another held-out fifth and other wrong
labels, the same for all parts. Runs are kept in OUT and skipped when done.
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from common import plainly, step_costs, trained
from frontier import PLAIN, TITLES

from rte.config import RunConfig, merge, resolve
from rte.files import read_json, write_json
from rte.noise.config import parse_noise
from rte.reproduce.plan import anchored, shard
from rte.run.folder import reopen

Tree: TypeAlias = dict[str, Any]
ALL, ONE_LOOK = "the preset", "predictions without mirror images"
HOLDOUT, TRAINING = 0.2, 40_000
STEPS = 2933
"""Of the run with all parts: 3,666 is what five minutes have, for 50,000 images."""
WITHOUT: dict[str, dict[str, Tree]] = {
    "symmetric:0.4": {
        ALL: {},
        "SGD instead of Muon": {
            "train": {"optimizer": "sgd", "lr": {"kind": "triangle", "peak": 0.18, "start": 0.036, "top": 0.2}}
        },
        "32 pixels all along": {"train": {"resolution": 1.0}},
        "crops of 4 pixels, black border": {"views": {"pad": 4, "border": "zero"}},
        "L_q in place of likelihood and importance sampling": {"method": {"likelihood": False}},
    },
    "symmetric:0.8": {
        ALL: {},
        "q and learning rate of 40 % noise": {
            "method": {"name": "gce", "q": 0.675, "decay": 0.95},
            "train": {"lr": {"kind": "triangle", "peak": 0.04, "start": 0.008, "top": 0.2}},
        },
    },
}
"""By noise and name, what is set otherwise. Rates are those for clean labels where `auto` takes them down."""
COSTS = {"optimizer", "resolution"}
"""Settings on which the time of a step depends."""


def settings(noise: str, name: str, seed: int, steps: int) -> RunConfig:
    """The preset without a part."""
    length = {
        "steps": steps,
        "epochs": math.ceil(steps / (TRAINING // 128)),
        "holdout": HOLDOUT,
        "evaluate_every": 1000,
        "precision": "fp32",  # as the recorded runs; what `auto` decides would make begun runs others
    }
    tree: Tree = {"data": {"name": "cifar10"}, "noise": parse_noise(noise), "seed": seed, "train": length}
    config = resolve("laptop", merge(tree, WITHOUT[noise][name]))
    return config.with_net(config.net.name)


def lengths(args: argparse.Namespace, kept: Path) -> dict[str, dict[str, int]]:
    """Steps by noise and name that take the time of the preset's: as kept, or measured where that is lacking."""
    known: dict[str, dict[str, int]] = read_json(kept) if kept.exists() else {}
    for noise in args.noises:
        own = known.setdefault(noise, {})
        lacking = [name for name in WITHOUT[noise] if name not in own]
        own |= dict.fromkeys(lacking, STEPS)
        if timed := [name for name in lacking if COSTS & set(WITHOUT[noise][name].get("train", {}))]:
            runs = {name: anchored(settings(noise, name, 0, STEPS), args.data_dir) for name in (ALL, *timed)}
            costs = step_costs(runs, args.data_dir)
            own |= {name: round(STEPS * costs[ALL] / costs[name]) for name in timed}
        write_json(kept, known)
    return known


def contests(args: argparse.Namespace, known: dict[str, dict[str, int]]) -> list[Tree]:
    """Every run, seed by seed."""
    found = []
    for seed, noise in product(range(args.seeds), args.noises):
        for number, name in enumerate(WITHOUT[noise]):
            config = anchored(settings(noise, name, seed, known[noise][name]), args.data_dir)
            folder = args.out / f"{noise}-{number}-s{seed}".translate(PLAIN)
            found.append({"noise": noise, "name": name, "seed": seed, "config": config, "folder": folder})
    return found


def examined(one: Tree, data_dir: Path | None) -> dict[str, Tree]:
    """Held-out and test accuracy of a run that is done, by the name of what is left out."""
    result = read_json(one["folder"] / "result.json")
    found = {one["name"]: {"held_out": result["val"]["last"], "test": result["test"]["last"]}}
    if one["name"] == ALL:
        again = one["folder"] / "one_look.json"
        if not again.exists():
            method, examiner = reopen(one["folder"], data_dir=data_dir, which="checkpoint")
            examiner.viewer.cfg = examiner.viewer.cfg.model_copy(update={"mirror": False})
            seen = examiner(method)
            write_json(again, {"held_out": seen["val"]["top1"], "test": seen["test"]["top1"]})
        found[ONE_LOOK] = read_json(again)
    return found


def summary(found: list[Tree], known: dict[str, dict[str, int]], data_dir: Path | None) -> list[Tree]:
    """One row for each noise and name, from the runs that are done."""
    rows: dict[tuple[str, str], Tree] = {}
    for one in (one for one in found if (one["folder"] / "result.json").exists()):
        noise = one["noise"]
        for name, seen in examined(one, data_dir).items():
            steps = known[noise].get(name, STEPS)
            empty = {"noise": TITLES[noise], "name": name, "steps": steps, "seeds": [], "held_out": [], "test": []}
            row = rows.setdefault((noise, name), empty)
            row["seeds"].append(one["seed"])
            for what, value in seen.items():
                row[what].append(round(100 * value, 2))
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/parts"), help="where the runs are kept")
    parser.add_argument("--noises", type=lambda text: text.split(","), default=list(WITHOUT))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shard", help="i/n: every n-th run from the i-th on")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    known = lengths(args, args.out / "steps.json")
    found = contests(args, known)
    for one in shard(found, args.shard):
        result = trained(one["folder"], one["config"], args.data_dir)
        print(f"{one['noise']}, {one['name']}, seed {one['seed']}: {100 * result['val']['last']:.2f} %", flush=True)
    if args.json:
        write_json(args.json, {"network": found[0]["config"].net.name, "rows": summary(found, known, args.data_dir)})


if __name__ == "__main__":
    plainly(main)
