"""Every method on scikit-learn's digits, at five noises and with five seeds: the table of docs/comparing.md.

    python benchmarks/digits.py --json results/digits.json
    python tools/measured.py docs                          # puts the numbers on the page

A comparison for each noise (see `rte compare`), all of one length. Each method takes the best of three learning rates
on held-out noisy labels, tried with the first seed at the noise RATED. Methods that need trusted examples are compared
among themselves and with cross-entropy, all on labels of which 100 are known to be right. One seed goes through all
noises before the next one begins, and the numbers are written after each, so that what is there is a whole table. Runs
are kept in OUT; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import plainly

from rte import registry
from rte.compare.plan import Comparison, plan
from rte.compare.runner import FILE, begin, reopen, train
from rte.compare.summary import Row
from rte.config import RunConfig, resolve
from rte.errors import CheckpointError
from rte.files import write_json
from rte.noise.config import parse_noise
from rte.parts.schedules import scaled
from rte.train.trainer import Progress, Scores

RATED = "symmetric:0.4"
NOISES = (RATED, "none", "symmetric:0.6", "symmetric:0.8", "pair:0.45")
RATES = "0.3,1,3"
TRUSTED = 100
EPOCHS, HOLDOUT = 16, 0.2
SHOWN = ("last", "selected", "val", "memorised")


def groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Methods that are compared with each other: all, and those that need trusted examples beside cross-entropy."""
    needy = [name for name in names if "trusted examples" in registry.method(name).needs]
    return {"all": [name for name in names if name not in needy], "trusted": ["ce", *needy] if needy else []}


def configure(name: str, *, group: str, noise: str, epochs: int, factors: Mapping[str, float | None]) -> RunConfig:
    """A method's settings with the first seed, at the learning rate that was chosen for it, if one was."""
    length = {"epochs": epochs, "holdout": HOLDOUT, "trusted": TRUSTED if group == "trusted" else 0}
    tree = {"data": {"name": "digits"}, "noise": parse_noise(noise), "train": length, "method": {"name": name}}
    config = resolve("digits", tree)
    factor = factors.get(name) or 1.0
    return config if factor == 1.0 else config.with_train(lr=scaled(config.train.lr, factor))


def compared(
    names: Sequence[str], group: str, noise: str, args: argparse.Namespace, factors: Mapping[str, float | None]
) -> Comparison:
    """The comparison of a group at a noise."""
    settings = partial(configure, group=group, noise=noise, epochs=args.epochs, factors=factors)
    rates = RATES if noise == RATED else None
    return plan(names, settings, seeds=args.seeds, rates=rates)[0]


def opened(comparison: Comparison, folder: Path) -> Path:
    """The folder of a comparison, made or found again."""
    if not (folder / FILE).exists():
        begin(comparison, folder, None)
    elif reopen(folder, None)[0] != comparison:
        raise CheckpointError(f"{folder} holds a comparison with other settings; choose another folder with --out.")
    return folder


class Line:
    """One line for each run that ends."""

    def __init__(self, name: str, epochs: int) -> None:
        self.name, self.epochs = name, epochs

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        pass

    def epoch(self, epoch: int, scores: Scores) -> None:
        if epoch == self.epochs:
            print(f"{self.name}: {100 * scores['test']['top1']:.1f} %", flush=True)


def shown(row: Row) -> dict[str, Any]:
    """A row as it is recorded: shares by seed, and how it stands to the best."""
    values = {name: [round(v, 4) for v in row.figures[name].values] for name in SHOWN if name in row.figures}
    return {"method": row.method, **values, "behind": row.behind, "tie": row.tie, "failed": row.failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/digits"), help="where the runs are kept")
    parser.add_argument("--methods", type=lambda text: text.split(","), help="some only; default: all")
    parser.add_argument("--noises", type=lambda text: text.split(","), default=list(NOISES))
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found: dict[str, Any] = {"epochs": args.epochs, "holdout": HOLDOUT, "trusted": TRUSTED, "seeds": args.seeds}
    found |= {"rated": RATED, "rates": {}, "noises": {}}
    noises = [RATED, *(noise for noise in args.noises if noise != RATED)]
    args.out.mkdir(parents=True, exist_ok=True)
    for seeds in range(1, args.seeds + 1):
        for noise in noises:
            for group, names in groups(args.methods or registry.methods()).items():
                if not names:
                    continue
                factors = found["rates"].get(group, {})
                comparison = compared(names, group, noise, args, {} if noise == RATED else factors)
                folder = opened(comparison, args.out / f"{group}-{noise.replace(':', '-')}")
                watch = partial(_line, f"{noise} {group}", args.epochs)
                rows = train(replace(comparison, seeds=seeds), folder, data_dir=None, watch=watch)
                if noise == RATED:
                    found["rates"][group] = {row.method: row.factor for row in rows}
                found["noises"].setdefault(noise, {})[group] = [shown(row) for row in rows]
                if args.json:
                    write_json(args.json, found)


def _line(title: str, epochs: int, name: str) -> Line:
    return Line(f"{title} {name}", epochs)


if __name__ == "__main__":
    plainly(main)
