"""How many times as fast a step of the preset `laptop` is in bf16 as in single precision, on this processor.

    python benchmarks/precision.py --data-dir DIR --json results/precision.json
    python tools/measured.py docs                          # puts the numbers on the page

A step is everything the trainer does, averaged over the resolutions of a run. Both are timed in turn in one process,
with nothing beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from common import plainly, step_costs

from rte.config import resolve
from rte.files import write_json

KINDS = ("fp32", "bf16")


def measure(net: str, data_dir: Path | None) -> dict[str, object]:
    tree = {"data": {"name": "cifar10"}, "noise": {"name": "symmetric", "ratio": 0.4}}
    config = resolve("laptop", tree).with_net(net)
    costs = step_costs({kind: config.with_train(precision=kind) for kind in KINDS}, data_dir)
    seconds = {kind: round(costs[kind], 4) for kind in KINDS}
    return {"net": net, "seconds": seconds, "ratio": round(costs["fp32"] / costs["bf16"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--nets", default="swift-24,swift-32,swift-48,swift-64")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for net in args.nets.split(","):
        rows.append(measure(net, args.data_dir))
        print(f"{net:10} fp32 / bf16 {rows[-1]['ratio']}", flush=True)
    if args.json:
        write_json(args.json, {"threads": torch.get_num_threads(), "rows": rows})


if __name__ == "__main__":
    plainly(main)
