"""Accuracy against minutes on CIFAR-10 with noisy labels: every method with the same network, fitted to the same time.

    python benchmarks/frontier.py --data-dir DIR --json results/frontier.json --figure docs/images/frontier.png
    python tools/measured.py docs                          # puts the numbers on the page

Each run is one with --budget: the clock is its schedule, and it takes the network that --budget takes for that time.
The first seed of each cell must have the machine to itself. Later seeds follow the path that the first one has taken
(clock.jsonl in its folder), so that they have the same steps whatever else the machine does, and may share it: with
OMP_NUM_THREADS=1, call the command twice with --shard 1/2 and 2/2. What half precision brings is another contest, in a
file of its own:

    python benchmarks/frontier.py --set train.precision=bf16 --out runs/fast --json results/fast.json

The settings are the preset's for each method; none was chosen by looking at the test set. Runs are kept in OUT and
skipped when done, and so are those whose outcome is in the JSON file already. Rows there whose settings are no longer
the preset's become its "earlier" ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, TypeAlias

from common import plainly, trained
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rte.config import RunConfig, merge, parse_override, resolve
from rte.files import read_json, write_json
from rte.noise.config import parse_noise
from rte.reproduce.plan import anchored, key, shard

METHODS = "auto,gce,ce,elr"
WORST = "labels:CIFAR-10_human.pt:worse_label"
NOISES = f"symmetric:0.4,symmetric:0.8,{WORST}"
TITLES = {
    "symmetric:0.4": "40 % symmetric",
    "symmetric:0.8": "80 % symmetric",
    WORST: "CIFAR-10N worst",
    "none": "clean labels",
    "symmetric:0.2": "20 % symmetric",
    "symmetric:0.6": "60 % symmetric",
}
WRONG = {WORST: 0.4}
"""The share of wrong labels where the name of the noise does not say it."""
PLAIN = str.maketrans(":/", "--")
Row: TypeAlias = dict[str, Any]


HEAD = ("noise", "minutes", "method", "net", "recipe")
"""Of a row, what tells it from others; `recipe` stands for its settings, length and seed left out."""


def settings(args: argparse.Namespace, method: str, noise: str, net: str | None = None, seed: int = 0) -> RunConfig:
    """The preset for one method under one noise; `--set` counts for all."""
    tree: dict[str, Any] = {"data": {"name": "cifar10"}, "noise": parse_noise(noise), "seed": seed}
    tree = merge(tree, {"method": {"name": method}, "train": {"precision": "fp32", "evaluate_every": 1000}})
    if method == "co_teaching":  # it has to be told
        tree = merge(tree, {"method": {"noise_rate": WRONG.get(noise, tree["noise"].get("ratio", 0.0))}})
    for text in args.set:
        tree = merge(tree, parse_override(text))
    config = resolve(args.preset, tree)
    return config.with_net(net) if net else config


def recorded(path: Path | None) -> dict[str, list[Row]]:
    """What is in a file of results: `rows`, and `earlier` ones."""
    found = read_json(path) if path and path.exists() else {}
    return {"rows": found.get("rows", []), "earlier": found.get("earlier", [])}


def current(args: argparse.Namespace, row: Row) -> bool:
    """Whether a row was made with the settings that count now."""
    return bool(row.get("recipe") == key(settings(args, row["method"], noise_of(row), row["net"])))


def noise_of(row: Row) -> str:
    """As it is written for `--noise`."""
    return {title: noise for noise, title in TITLES.items()}.get(row["noise"], row["noise"])


def contests(args: argparse.Namespace) -> list[Row]:
    """Every run: seed by seed, short ones first. `like` is whose path it follows."""
    found = []
    for seed, minutes in product(range(args.seeds), args.budgets):
        for noise, method in product(args.noises, args.methods):
            name = f"{noise}-{minutes:g}m-{method}".translate(PLAIN)
            config = anchored(settings(args, method, noise, seed=seed), args.data_dir)
            entry = {"noise": TITLES.get(noise, noise), "minutes": minutes, "method": method, "seed": seed}
            like = args.out / f"{name}-s0" if seed else None
            found.append({**entry, "config": config, "folder": args.out / f"{name}-s{seed}", "like": like})
    return found


def known(args: argparse.Namespace, one: Row, rows: Sequence[Row]) -> bool:
    """Whether rows tell the outcome of a run with the settings that count now."""
    cell = [row for row in rows if all(row[name] == one[name] for name in ("noise", "minutes", "method"))]
    return any(one["seed"] in row["seeds"] and current(args, row) for row in cell)


def outcome(args: argparse.Namespace, one: Row) -> Row:
    """The head of the row that a finished run belongs to, and its steps."""
    result = read_json(one["folder"] / "result.json")
    recipe = key(settings(args, one["method"], noise_of(one), result["net"]))
    return {**{name: one[name] for name in HEAD[:3]}, "net": result["net"], "steps": result["steps"], "recipe": recipe}


def head(row: Row) -> tuple[Any, ...]:
    """What tells a row from others."""
    return tuple(row.get(name) for name in HEAD)


def seeds(row: Row, old: Sequence[Row]) -> dict[int, tuple[float, float | None, bool]]:
    """By seed: test accuracy, wrong labels memorised and whether in bf16, of runs with the settings of `row` that `old`
    rows know of."""
    found = {}
    for one in (one for one in old if head(one) == head(row)):
        for seed, last, memorised in zip(one["seeds"], one["last"], one["memorised"], strict=True):
            found[seed] = last, memorised, seed in one.get("bf16", [])
    return found


def summary(args: argparse.Namespace, found: list[Row], old: Sequence[Row] = ()) -> list[Row]:
    """One row for each method, noise and time, from the runs that are done and what `old` rows tell of the others."""
    rows: dict[tuple[Any, ...], tuple[Row, dict[int, tuple[float, float | None, bool]]]] = {}
    for row in (one for one in old if current(args, one)):
        rows[head(row)] = {name: row[name] for name in (*HEAD[:4], "steps", "recipe")}, seeds(row, old)
    for one in (one for one in found if (one["folder"] / "result.json").exists()):
        result, row = read_json(one["folder"] / "result.json"), outcome(args, one)
        last, share = result["test"]["last"], result["memorisation"]["memorised"]  # no share of no wrong label
        learnt = None if share is None else round(100 * share, 2)
        rows.setdefault(head(row), (row, {}))[1][one["seed"]] = round(100 * last, 2), learnt, False
    made = []
    for row, outcomes in rows.values():
        scores, memorised, _ = zip(*(outcomes[seed] for seed in sorted(outcomes)), strict=True)
        row |= {"seeds": sorted(outcomes), "last": [*scores], "memorised": [*memorised]}
        if half := sorted(seed for seed in outcomes if outcomes[seed][2]):
            row["bf16"] = half
        spread = round(stdev(scores), 2) if len(scores) > 1 else None
        made.append({**row, "mean": round(mean(scores), 2), "spread": spread})
    return made


def place(name: str, usual: Sequence[str]) -> int:
    """Where a name stands among the usual ones; others come after them."""
    return usual.index(name) if name in usual else len(usual)


def combined(args: argparse.Namespace, new: list[Row], old: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The new rows, which have the old seeds; old ones of other cells; and what is overtaken, as earlier ones."""
    cells, heads = {head(row)[:3] for row in new}, {head(row) for row in new}
    rows, earlier = [*new], [*old["earlier"]]
    for row in old["rows"]:
        if head(row) not in heads:
            (rows if current(args, row) and head(row)[:3] not in cells else earlier).append(row)
    noises, methods = [*TITLES.values()], METHODS.split(",")
    rows.sort(key=lambda row: (place(row["noise"], noises), row["minutes"], place(row["method"], methods)))
    return {"rows": rows, "earlier": earlier}


def panels(rows: list[Row]) -> list[str]:
    """The noises that were measured at several times, in order; all of them where there is none."""
    times: dict[str, set[float]] = {}
    for row in rows:
        times.setdefault(row["noise"], set()).add(row["minutes"])
    return [noise for noise, minutes in times.items() if len(minutes) > 1] or list(times)


def draw(rows: list[Row], path: Path) -> None:
    """A panel for each noise, a line for each method."""
    noises = panels(rows)
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
    parser.add_argument("--shard", help="i/n: every n-th run from the i-th on")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found, old = contests(args), recorded(args.json)
    for one in shard(found, args.shard):
        if known(args, one, old["rows"]):
            continue
        time = {"seconds": 60 * one["minutes"], "like": one["like"]}
        result = trained(one["folder"], one["config"], args.data_dir, **time)
        print(f"{one['folder'].name}: {100 * result['test']['last']:.2f} % after {result['steps']} steps", flush=True)
    old = recorded(args.json)  # again: another part may have written meanwhile
    kept = combined(args, summary(args, found, old["rows"]), old)
    if args.json:
        write_json(args.json, {"preset": args.preset, **kept})
    if args.figure:
        draw(kept["rows"], args.figure)


if __name__ == "__main__":
    plainly(main)
