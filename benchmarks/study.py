"""The settings of the preset `study`, chosen on held-out noisy labels.

    python benchmarks/study.py --data-dir DIR --json results/study.json

CIFAR-10 with 80 % symmetric noise; a fifth of the training images is held out with its noisy labels, by which every
choice is made. All runs have the preset's network and epochs. One thing is changed at a time: first when the lambdas
begin and how large they are, then q and N*, then the learning rate of each method, from the same three. Test accuracy
is kept beside it and shown by --reveal alone, when everything is chosen. Runs are kept in OUT and skipped when done:
with OMP_NUM_THREADS=1, call the command twice with --shard 1/2 and 2/2.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, TypeAlias

from common import plainly, trained

from rte.config import RunConfig, merge, resolve
from rte.files import read_json, write_json
from rte.noise.config import parse_noise
from rte.reproduce.plan import shard

Tree: TypeAlias = dict[str, Any]
NOISE, HOLDOUT = "symmetric:0.8", 0.2
RATES = (0.003, 0.01, 0.03)
SINE = {"kind": "sine", "scale": 0.6, "phase": 0.8125}


def lambdas(jsd: float, ecr: float, begin: float) -> Tree:
    """Both weights, 0 until a share `begin` of the run."""
    weights = {"jsd_weight": jsd, "ecr_weight": ecr}
    return {
        "method": {
            name: {"kind": "steps", "values": [0.0, value], "fractions": [0.0, begin]}
            for name, value in weights.items()
        }
    }


def rate(peak: float) -> Tree:
    """The preset's triangle with another peak."""
    return {"train": {"lr": {"kind": "triangle", "peak": peak, "start": peak / 5, "top": 0.2, "end": 0.0}}}


CE: Tree = {"method": {"name": "ce"}}
GCE: Tree = {"method": {"name": "gce", "q": 0.7}}
CANDIDATES: dict[str, Tree] = {
    "rte, 12 and 1 from 30 %": lambdas(12, 1, 0.3),
    "rte, 6 and 20 from 30 %": lambdas(6, 20, 0.3),
    "gce, rate 0.01": GCE,
    "ce, rate 0.01": CE,
    "rte, 3 and 10 from 50 %": lambdas(3, 10, 0.5),
    "rte, 12 and 1 from 30 %, the paper's q": merge(lambdas(12, 1, 0.3), {"method": {"q": SINE}}),
    "gce, rate 0.003": merge(GCE, rate(0.003)),
    "gce, rate 0.03": merge(GCE, rate(0.03)),
    "ce, rate 0.003": merge(CE, rate(0.003)),
    "ce, rate 0.03": merge(CE, rate(0.03)),
    "rte, 12 and 1 from 30 %, rate 0.003": merge(lambdas(12, 1, 0.3), rate(0.003)),
    "rte, 12 and 1 from 30 %, rate 0.03": merge(lambdas(12, 1, 0.3), rate(0.03)),
    "rte, 12 and 1 from 30 %, N* = 4": merge(lambdas(12, 1, 0.3), {"method": {"views": 4}}),
}
"""By name, what differs from the preset."""


def settings(name: str) -> RunConfig:
    """The run of a candidate."""
    tree: Tree = {
        "data": {"name": "cifar10"},
        "noise": parse_noise(NOISE),
        "train": {"holdout": HOLDOUT, "evaluate_every": 10},
    }
    return resolve("study", merge(tree, CANDIDATES[name]))


def row(name: str, folder: Path, *, reveal: bool) -> Tree:
    """What is known of a candidate whose run is done."""
    result = read_json(folder / "result.json")
    seen = {"name": name, "held_out": round(100 * result["val"]["last"], 2), "nll": round(result["val"]["nll"], 4)}
    seen["minutes"] = round(result["train_seconds"] / 60, 1)
    return seen | ({"test": round(100 * result["test"]["last"], 2)} if reveal else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/study"), help="where the runs are kept")
    parser.add_argument("--only", action="append", help="candidates whose name contains this; repeatable")
    parser.add_argument("--shard", help="i/n: every n-th run from the i-th on")
    parser.add_argument("--reveal", action="store_true", help="show test accuracy too: after the choice")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    folders = {name: args.out / re.sub(r"[^a-z0-9.]+", "-", name.lower()) for name in CANDIDATES}
    wanted = [name for name in CANDIDATES if not args.only or any(text in name for text in args.only)]
    for name in shard(wanted, args.shard):
        trained(folders[name], settings(name), args.data_dir)
        print(row(name, folders[name], reveal=args.reveal), flush=True)
    done = [name for name in wanted if (folders[name] / "result.json").exists()]
    if args.json:
        rows = [row(name, folders[name], reveal=args.reveal) for name in done]
        write_json(args.json, {"noise": NOISE, "held_out": HOLDOUT, "seeds": 1, "rows": rows})


if __name__ == "__main__":
    plainly(main)
