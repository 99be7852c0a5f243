"""Accuracy against minutes on CIFAR-10 with noisy labels: every method with the same network, fitted to the same time.

    python benchmarks/frontier.py --data-dir DIR --json results/frontier.json --figure docs/images/frontier.png
    python -m rte.report.measured docs                          # puts the numbers on the page

First it is measured on an idle machine which network --budget takes for each time, and by turns how many steps of each
method with that network fit into it; both are kept in OUT/steps.json. A budget is then a number of steps, to which each
method's schedules are fitted, so that the runs may share the machine: with OMP_NUM_THREADS=1, call the command twice
with --part 1/2 and 2/2. The settings are the preset's for each method; none was chosen by looking at the test set. Runs
are kept in OUT and skipped when done.
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from common import lengths, networks, plainly, trained
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rte.config import RunConfig, merge, parse_override, resolve
from rte.files import read_json, write_json
from rte.noise.config import parse_noise
from rte.reproduce.plan import anchored, part

METHODS = "rte,gce,ce,elr"
WORST = "labels:CIFAR-10_human.pt:worse_label"
NOISES = f"symmetric:0.4,symmetric:0.8,{WORST}"
TITLES = {"symmetric:0.4": "40 % symmetric", "symmetric:0.8": "80 % symmetric", WORST: "CIFAR-10N worst"}
TRAINING = 50_000
PLAIN = str.maketrans(":/", "--")


def settings(
    args: argparse.Namespace, method: str, noise: str, net: str | None = None, seed: int = 0, **train: int
) -> RunConfig:
    """The preset for one method under one noise, whose file is in the data folder; `--set` counts for all."""
    tree: dict[str, Any] = {"data": {"name": "cifar10"}, "noise": parse_noise(noise), "seed": seed}
    tree = merge(tree, {"method": {"name": method}, "train": {**train, "evaluate_every": 1000}})
    for text in args.set:
        tree = merge(tree, parse_override(text))
    config = anchored(resolve(args.preset, tree), args.data_dir)
    return config.with_net(net) if net else config


def fitted(args: argparse.Namespace, kept: Path) -> dict[str, dict[str, Any]]:
    """By minutes: the network, and how long each method's run may be; as kept, or measured where that is lacking."""
    known: dict[str, dict[str, Any]] = read_json(kept) if kept.exists() else {}
    noise = args.noises[0]
    if new := [m for m in args.budgets if f"{m:g}" not in known]:
        found = networks(settings(args, args.methods[0], noise), new, args.data_dir)
        known |= {minutes: {"net": net} for minutes, net in found.items()}
    for net in sorted({row["net"] for row in known.values()}):
        minutes = [m for m in args.budgets if known[f"{m:g}"]["net"] == net]
        lacking = [name for name in args.methods if any(name not in known[f"{m:g}"] for m in minutes)]
        fresh = lengths({name: settings(args, name, noise, net) for name in lacking}, minutes, args.data_dir)
        for name, steps in fresh.items():
            for m in minutes:
                known[f"{m:g}"].setdefault(name, steps[f"{m:g}"])
        write_json(kept, known)
    return known


def contests(args: argparse.Namespace, known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Every run: seed by seed, short ones first."""
    found = []
    for seed, minutes in product(range(args.seeds), args.budgets):
        row = known[f"{minutes:g}"]
        for noise, method in product(args.noises, args.methods):
            steps, net = row[method], row["net"]
            train = settings(args, method, noise).train
            epochs = math.ceil(steps / ((train.examples or TRAINING) // train.batch))
            folder = args.out / f"{noise}-{minutes:g}m-{method}-s{seed}".translate(PLAIN)
            config = settings(args, method, noise, net, seed, steps=steps, epochs=epochs)
            entry = {"noise": TITLES.get(noise, noise), "minutes": minutes, "method": method, "net": net}
            found.append({**entry, "seed": seed, "steps": steps, "config": config, "folder": folder})
    return found


def summary(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each method, noise and time, from the runs that are done."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in found:
        done = one["folder"] / "result.json"
        if not done.exists():
            continue
        head = {name: one[name] for name in ("noise", "minutes", "method", "net", "steps")}
        row = rows.setdefault(tuple(head.values()), {**head, "seeds": [], "last": [], "memorised": []})
        result = read_json(done)
        row["seeds"].append(one["seed"])
        row["last"].append(round(100 * result["test"]["last"], 2))
        row["memorised"].append(round(100 * result["memorisation"]["memorised"], 2))
    for row in rows.values():
        row["mean"] = round(mean(row["last"]), 2)
        row["spread"] = round(stdev(row["last"]), 2) if len(row["last"]) > 1 else None
    return list(rows.values())


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A panel for each noise, a line for each method."""
    noises = list(dict.fromkeys(row["noise"] for row in rows))
    ticks = sorted({row["minutes"] for row in rows})
    figure = Figure(figsize=(4.6 * len(noises), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for panel, noise in zip(figure.subplots(1, len(noises), squeeze=False)[0], noises, strict=True):
        for method in dict.fromkeys(row["method"] for row in rows):
            own = [row for row in rows if (row["noise"], row["method"]) == (noise, method)]
            spread = [row["spread"] or 0.0 for row in own]
            minutes, means = [row["minutes"] for row in own], [row["mean"] for row in own]
            panel.errorbar(minutes, means, yerr=spread, marker="o", capsize=3, label=method)
        panel.set(title=noise, xlabel="minutes on two cores", ylabel="test accuracy %", xscale="log")
        panel.set_xticks(ticks, [f"{m:g}" for m in ticks])
        panel.minorticks_off()
        panel.legend(frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/frontier"), help="where the runs are kept")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=METHODS.split(","))
    parser.add_argument("--noises", type=lambda text: text.split(","), default=NOISES.split(","))
    parser.add_argument("--budgets", type=lambda text: [float(m) for m in text.split(",")], default=[5.0, 10.0, 30.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--part", help="i/n: every n-th run from the i-th on")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = contests(args, fitted(args, args.out / "steps.json"))
    for one in part(found, args.part):
        result = trained(one["folder"], one["config"], args.data_dir)
        print(f"{one['folder'].name}: {100 * result['test']['last']:.2f} % after {result['steps']} steps", flush=True)
    rows = summary(found)
    if args.json:
        write_json(args.json, {"preset": args.preset, "rows": rows})
    if args.figure:
        draw(rows, args.figure)


if __name__ == "__main__":
    plainly(main)
