"""Population based training against the manual preset with the same total compute: digits, 60 % symmetric noise.

    python benchmarks/pbt.py --json results/pbt-digits.json --figure docs/images/pbt-digits.png
    python tools/measured.py docs                          # puts the numbers on the page

For each seed three contestants train on the same noisy labels, a tenth of which is held out, for as many epochs in all:

PBT       a population that searches q, both lambdas, learning rate and weight decay; N* stays, so all epochs cost the
          same
manual    the digits preset with as many seeds as the population has members: the mean of them, and the one with the
          best score on the held-out noisy labels
long      one run of the digits preset with as many times its epochs

Whatever is chosen is chosen by held-out noisy labels; test accuracies are those at the end of a run. Stopped or killed,
the same command goes on where it was. On two cores the whole takes about an hour and a half.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

from common import plainly, trained
from rich.console import Console

from rte.config import RunConfig, resolve
from rte.errors import CheckpointError
from rte.files import write_json
from rte.report import tuning
from rte.report.schedules import draw
from rte.search.definition import read_plan, read_records

SEARCH = [
    "train.lr=[0.01, 0.2]",
    "train.weight_decay=[0.00005, 0.002]",
    "method.q=[0.0, 0.9]",
    "method.jsd_weight=[0.0, 12.0]",
    "method.ecr_weight=[0.0, 12.0]",
    "method.views=keep",
]
"""Around the preset's values (lr 0.1, weight decay 0.0005, q up to 0.6, lambdas 4) and what was tried beside them."""

MARGIN = 0.01
"""PBT is to be at least as good as the best manual run, less this: one standard error of 95 % on 500 test images."""


def settings(noise: int, seed: int, epochs: int | None) -> RunConfig:
    """The digits preset on the noise of one seed, with the weights and the data order of another."""
    train: dict[str, Any] = {"holdout": 0.1, "device": "cpu"}
    options = {
        "seed": seed,
        "noise": {"seed": noise},
        "train": train if epochs is None else {**train, "epochs": epochs},
    }
    return resolve("digits", options)


def searched(config: RunConfig, folder: Path, population: int, interval: int, console: Console) -> dict[str, Any]:
    """The numbers of a search's winner: done before, gone on with, or new."""
    plan = tuning.plan(config, {"population": population, "interval": interval}, SEARCH, None)
    if not folder.exists():
        tuning.begin(plan, folder)
    elif read_plan(folder).tree() != plan.tree():
        raise CheckpointError(f"{folder} holds a search with other settings; choose another --out.")
    result = tuning.go(plan, folder, console, address=None, dashboard=False)
    return {**numbers(result), "inherited": result["tune"]["inherited"]}


def numbers(result: dict[str, Any]) -> dict[str, Any]:
    """Accuracies at the end of a run, on the test set and on held-out noisy labels."""
    return {"seed": result["seed"], "test": result["test"]["last"], "held_out": result["val"]["last"]}


def compete(seed: int, args: argparse.Namespace, console: Console) -> dict[str, Any]:
    """All contestants on the noise of one seed."""
    base, n = args.out / f"noise-{seed}", args.population
    config = settings(seed, seed, args.epochs)
    pbt = searched(config, base / "pbt", n, args.interval, console)
    manual = []
    for own in range(seed * n, seed * n + n):
        manual.append(numbers(trained(base / f"manual-{own}", settings(seed, own, args.epochs))))
        console.print(f"manual, seed {own}: {100 * manual[-1]['test']:.1f} %")
    long = numbers(trained(base / "long", settings(seed, seed, n * config.train.epochs)))
    return {"noise": seed, "epochs": config.train.epochs, "pbt": pbt, "manual": manual, "long": long}


def summary(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Test accuracy of each contestant, as the mean over the noise seeds."""
    best = [max(row["manual"], key=lambda one: one["held_out"]) for row in rounds]
    return {
        "pbt": mean(row["pbt"]["test"] for row in rounds),
        "manual_best": mean(one["test"] for one in best),
        "manual_mean": mean(one["test"] for row in rounds for one in row["manual"]),
        "long": mean(row["long"]["test"] for row in rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="realisations of the noise")
    parser.add_argument("--population", type=int, default=8)
    parser.add_argument("--interval", type=int, default=4)
    parser.add_argument("--epochs", type=int, help="other than the preset's")
    parser.add_argument("--out", type=Path, default=Path("runs/pbt-digits"), help="where the runs are kept")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path, help="the schedules of the first seed")
    args = parser.parse_args()
    console = Console()
    rounds = []
    for seed in range(args.seeds):
        rounds.append(compete(seed, args, console))
        if args.json:  # after each, so that the first numbers can be read early
            shape = {"population": args.population, "interval": args.interval, "search": SEARCH, "margin": MARGIN}
            write_json(args.json, {**shape, "epochs": rounds[0]["epochs"], "mean": summary(rounds), "rounds": rounds})
    for name, value in summary(rounds).items():
        console.print(f"{name:12}{100 * value:6.2f} % test accuracy, mean of {len(rounds)}", highlight=False)
    if args.figure:
        folder = args.out / "noise-0" / "pbt"
        population = read_plan(folder).population(read_records(folder))
        draw(population, population.winner(), args.figure)


if __name__ == "__main__":
    plainly(main)
