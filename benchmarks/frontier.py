"""Accuracy against minutes on CIFAR-10 with noisy labels: every method with the same network, fitted to the same time.

    python benchmarks/frontier.py --data-dir DIR --json results/frontier.json --figure docs/images/frontier.png
    python tools/measured.py docs                          # puts the numbers on the page

First it is measured on an idle machine which network --budget takes for each time and noise, and by turns how many
steps of each method with that network fit into it; both are kept in OUT/steps.json. A method that comes later is timed
beside one whose length is known, so that it gets the same time whatever the machine does that day. A budget is then a
number of steps, to which each method's schedules are fitted, so that the runs may share the machine: with
OMP_NUM_THREADS=1, call the command twice with --part 1/2 and 2/2. Where a processor is faster in bf16, --precision bf16
has them done sooner: lengths are those of single precision either way, and rows tell which seeds were computed so. What
--budget itself does on such a processor is another contest, with lengths of its own in a file of its own:

    python benchmarks/frontier.py --set train.precision=bf16 --precision bf16 --out runs/fast --json results/fast.json

The settings are the preset's for each method; none was chosen by looking at the test set. Runs are kept in OUT and
skipped when done, and so are those whose outcome is in the JSON file already, which also tells the lengths. Rows there
whose settings are no longer the preset's become its "earlier" ones.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, TypeAlias

from common import lengths, networks, plainly, trained
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rte.config import RunConfig, merge, parse_override, resolve
from rte.files import read_json, write_json
from rte.noise.config import parse_noise
from rte.reproduce.plan import anchored, key, part

METHODS = "rte,gce,ce,elr"
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
TRAINING = 50_000
WRONG = {WORST: 0.4}
"""The share of wrong labels where the name of the noise does not say it."""
PLAIN = str.maketrans(":/", "--")
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """What is fitted to the time: the network by noise and minutes; by network, minutes and method how many steps."""

    nets: dict[str, dict[str, str]]
    steps: dict[str, dict[str, dict[str, int]]]


HEAD = ("noise", "minutes", "method", "net", "steps", "recipe")
"""Of a row, what tells it from others; `recipe` stands for its settings, length and seed left out."""


def settings(
    args: argparse.Namespace, method: str, noise: str, net: str | None = None, seed: int = 0, **train: int
) -> RunConfig:
    """The preset for one method under one noise; `--set` counts for all."""
    tree: dict[str, Any] = {"data": {"name": "cifar10"}, "noise": parse_noise(noise), "seed": seed}
    tree = merge(tree, {"method": {"name": method}, "train": {"precision": "fp32", **train, "evaluate_every": 1000}})
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


def fitted(args: argparse.Namespace, kept: Path) -> Known:
    """As kept and as recorded, or measured where that is lacking."""
    known = Known(**read_json(kept)) if kept.exists() else Known({}, {})
    for row in (one for one in recorded(args.json)["rows"] if current(args, one)):
        minutes = f"{row['minutes']:g}"
        known.nets.setdefault(noise_of(row), {}).setdefault(minutes, row["net"])
        known.steps.setdefault(row["net"], {}).setdefault(minutes, {}).setdefault(row["method"], row["steps"])

    def to_time(noise: str, method: str, net: str | None = None) -> RunConfig:
        return anchored(settings(args, method, noise, net), args.data_dir)

    for noise in args.noises:
        own = known.nets.setdefault(noise, {})
        if new := [m for m in args.budgets if f"{m:g}" not in own]:
            own |= networks(to_time(noise, args.methods[0]), new, args.data_dir)
    wanted = {(known.nets[noise][f"{m:g}"], m) for noise, m in product(args.noises, args.budgets)}
    for net in sorted({net for net, _ in wanted}):
        minutes = sorted(m for one, m in wanted if one == net)
        times = {m: known.steps.setdefault(net, {}).setdefault(f"{m:g}", {}) for m in minutes}
        lacking = [name for name in args.methods if any(name not in steps for steps in times.values())]
        beside = [name for name in METHODS.split(",") if lacking and all(name in steps for steps in times.values())][:1]
        timed = {name: to_time(args.noises[0], name, net) for name in (*lacking, *beside)}
        fresh = lengths(timed, minutes, args.data_dir)
        for name, (m, steps) in product(lacking, times.items()):
            pace = math.prod(steps[one] / fresh[one][f"{m:g}"] for one in beside)
            steps.setdefault(name, round(pace * fresh[name][f"{m:g}"]))
        write_json(kept, asdict(known))
    return known


def contests(args: argparse.Namespace, known: Known) -> list[Row]:
    """Every run: seed by seed, short ones first."""
    found = []
    for seed, minutes in product(range(args.seeds), args.budgets):
        for noise, method in product(args.noises, args.methods):
            net = known.nets[noise][f"{minutes:g}"]
            steps = known.steps[net][f"{minutes:g}"][method]
            plain = settings(args, method, noise, net)
            train = plain.train
            epochs = math.ceil(steps / ((train.examples or TRAINING) // train.batch))
            folder = args.out / f"{noise}-{minutes:g}m-{method}-s{seed}".translate(PLAIN)
            config = settings(args, method, noise, net, seed, steps=steps, epochs=epochs)
            config = config.with_train(precision=args.precision)
            entry = dict(zip(HEAD, (TITLES.get(noise, noise), minutes, method, net, steps, key(plain)), strict=True))
            found.append({**entry, "seed": seed, "config": anchored(config, args.data_dir), "folder": folder})
    return found


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


def summary(found: list[Row], old: Sequence[Row] = ()) -> list[Row]:
    """One row for each method, noise and time, from the runs that are done and what `old` rows tell of the others."""
    rows = {head(one): (dict(zip(HEAD, head(one), strict=True)), seeds(one, old)) for one in found}
    for one in found:
        if (done := one["folder"] / "result.json").exists():
            result = read_json(done)
            last, share = result["test"]["last"], result["memorisation"]["memorised"]  # no share of no wrong label
            learnt = None if share is None else round(100 * share, 2)
            rows[head(one)][1][one["seed"]] = round(100 * last, 2), learnt, one["config"].train.precision == "bf16"
    made = []
    for row, outcomes in rows.values():
        if outcomes:
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
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="in which runs are computed")
    parser.add_argument("--part", help="i/n: every n-th run from the i-th on")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = contests(args, fitted(args, args.out / "steps.json"))
    old = recorded(args.json)
    for one in part(found, args.part):
        if one["seed"] in seeds(one, old["rows"]):
            continue
        result = trained(one["folder"], one["config"], args.data_dir)
        print(f"{one['folder'].name}: {100 * result['test']['last']:.2f} % after {result['steps']} steps", flush=True)
    old = recorded(args.json)  # again: another part may have written meanwhile
    kept = combined(args, summary(found, old["rows"]), old)
    if args.json:
        write_json(args.json, {"preset": args.preset, **kept})
    if args.figure:
        draw(kept["rows"], args.figure)


if __name__ == "__main__":
    plainly(main)
