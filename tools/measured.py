"""The parts of the pages that are numbers: read from `results/`, or computed, so that page and numbers cannot disagree.

A page holds blocks `<!-- measured:NAME -->` ... `<!-- end -->`; `python tools/measured.py docs` rewrites what is
between, from `results/NAME.json` beside the folder `docs`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from compared import overview
from reference import update

from rte import nets
from rte.errors import ConfigError, did_you_mean
from rte.files import read_json
from rte.nets.cost import multiply_adds

Tree = dict[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    line = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, line, *rows))


# ---- what was measured


def scaling(found: Tree) -> str:
    """Two processes against one."""
    rows = [
        (
            row["name"],
            f"{row['step_seconds']:.3f}",
            f"{row['speedup']:.2f}",
            f"{row['lowest']:.2f} to {row['highest']:.2f}",
        )
        for row in found["rows"]
    ]
    return (
        f"RTE with N* = {found['views']} on the {found['net']} network, {found['batch']} images of 32x32 in a step, "
        f"{found['cores']} cores, torch {found['versions']['torch']}; medians of {found['rounds']} rounds:\n\n"
        + table(("", "seconds per step", "speed-up", "of single rounds"), rows)
    )


def pbt_digits(found: Tree) -> str:
    """Population based training against the manual preset."""
    n, epochs, seeds, means = found["population"], found["epochs"], len(found["rounds"]), found["mean"]
    best = [max(row["manual"], key=lambda one: one["held_out"]) for row in found["rounds"]]
    contestants = [
        (f"PBT, {n} members for {epochs} epochs", [row["pbt"]["test"] for row in found["rounds"]], means["pbt"]),
        (f"the preset, best of {n} on held-out labels", [one["test"] for one in best], means["manual_best"]),
        (
            f"the preset, mean of {n}",
            [mean(one["test"] for one in row["manual"]) for row in found["rounds"]],
            means["manual_mean"],
        ),
        (f"the preset for {n * epochs} epochs", [row["long"]["test"] for row in found["rounds"]], means["long"]),
    ]
    rows = [(name, *(f"{100 * value:.1f}" for value in own), f"{100 * all_:.2f}") for name, own, all_ in contestants]
    head = ("test accuracy `last` %", *(f"noise {row['noise']}" for row in found["rounds"]), "mean")
    ahead, margin = 100 * (means["pbt"] - means["manual_best"]), 100 * found["margin"]
    verdict = "within" if ahead >= -margin else "outside"
    return (
        f"{table(head, rows)}\n"
        f"Over {seeds} realisation{'s' if seeds > 1 else ''} of the noise PBT is {abs(ahead):.2f} points "
        f"{'above' if ahead >= 0 else 'below'} the best of {n} manual runs, {verdict} the margin of {margin:.1f}.\n\n"
        "![every searched value over the epochs, for the population and the winner](images/pbt-digits.png)\n"
    )


def step(found: Tree) -> str:
    """A step of RTE against the bare networks."""
    rows = [
        (
            row["net"],
            f"{row['views']}",
            f"{row['batch']}",
            f"{row['ratio']:.2f}",
            "{:.2f} to {:.2f}".format(*row["quartiles"]),
            f"{row['step_seconds']:.2f}",
        )
        for row in found["rows"]
    ]
    return table(("network", "N*", "batch", "step / floor", "middle half of the rounds", "seconds per step"), rows)


def precision(found: Tree) -> str:
    """A step in half precision beside one in single."""
    kinds = ("fp32", "bf16")
    rows = [(row["net"], *(f"{row['seconds'][k]:.3f}" for k in kinds), f"{row['ratio']:.2f}") for row in found["rows"]]
    return table(("network", *(f"{kind}, seconds per step" for kind in kinds), "times as fast"), rows)


def study(found: Tree) -> str:
    """The candidates for the settings of the preset `study`."""
    rows = [(r["name"], f"{r['held_out']:.2f}", f"{r['nll']:.4f}", f"{r['minutes']:.0f}") for r in found["rows"]]
    return table(("candidate", "held-out accuracy %", "held-out NLL", "minutes"), rows)


def frontier(found: Tree) -> str:
    """Test accuracy of every method after the same time, and what earlier settings of the preset had reached."""
    rows, earlier = found["rows"], found.get("earlier", [])
    shortest = min((row["minutes"] for row in rows), default=0.0)
    long = {row["noise"] for row in rows if row["minutes"] > shortest}
    blocks = [_contest([row for row in rows if row["noise"] in long or not long])]
    if long and any(row["noise"] not in long for row in rows):
        blocks.append(_across([row for row in rows if row["minutes"] == shortest]))
    if earlier:
        blocks.append(f"Before, with earlier settings of the preset:\n\n{_contest(earlier)}")
    return "\n".join(blocks)


def tables(found: Tree) -> str:
    """Every method on every table or set of texts, by noise."""
    runs = {(run["data"], run["method"], run["noise"]): run for run in found["runs"]}
    noises = sorted({noise for *_, noise in runs})
    rows = [
        (
            data,
            method,
            *(f"{100 * runs[data, method, n]['test']:.1f}" if (data, method, n) in runs else "–" for n in noises),
        )
        for data, method in dict.fromkeys((data, method) for data, method, _ in runs)
    ]
    return table(("data", "method", *(f"{noise:.0%}" for noise in noises)), rows)


def _across(found: Sequence[Tree]) -> str:
    """A table of methods and noises at one time: little noise first, and what is no share of labels last."""

    def much(noise: str) -> float:
        return 0.0 if noise.startswith("clean") else float(noise.split()[0]) if noise[0].isdigit() else math.inf

    noises = sorted(dict.fromkeys(row["noise"] for row in found), key=much)
    return table((f"{found[0]['minutes']:g} minutes, test accuracy %", *noises), _rows(found, "noise", noises))


def _contest(found: Sequence[Tree]) -> str:
    """By noise, a table of methods and minutes."""
    blocks = []
    for noise in dict.fromkeys(row["noise"] for row in found):
        own = [row for row in found if row["noise"] == noise]
        nets = {row["minutes"]: row["net"] for row in own}
        minutes = sorted(nets)
        head = (f"{noise}, test accuracy %", *(f"{m:g} minutes, {nets[m]}" for m in minutes))
        blocks.append(table(head, _rows(own, "minutes", minutes)))
    return "\n".join(blocks)


def _rows(found: Sequence[Tree], key: str, columns: Sequence[Any]) -> list[tuple[str, ...]]:
    """A line for each method; in a column the best as shown are marked where there are several methods."""
    cells = {(row["method"], row[key]): row for row in found}
    means = {column: [round(row["mean"], 1) for row in found if row[key] == column] for column in columns}
    best = {column: max(values) if len(values) > 1 else None for column, values in means.items()}
    methods = dict.fromkeys(row["method"] for row in found)
    return [(m, *(_entry(cells.get((m, column)), best[column]) for column in columns)) for m in methods]


def _entry(row: Tree | None, best: float | None) -> str:
    if row is None:
        return "–"
    text = f"**{row['mean']:.1f}**" if round(row["mean"], 1) == best else f"{row['mean']:.1f}"
    return text if row["spread"] is None else f"{text} ± {row['spread']:.1f}"


def parts(found: Tree) -> str:
    """By noise, what is lost without each part; differences by seed, with their standard error over seeds."""
    blocks = []
    for noise in dict.fromkeys(row["noise"] for row in found["rows"]):
        whole, *others = (row for row in found["rows"] if row["noise"] == noise)
        head = (
            f"{noise}, `{found['network']}`",
            "steps",
            "seeds",
            "noisy held-out %",
            "difference",
            "test %",
            "difference",
        )
        rows = [
            (row["name"], f"{row['steps']:,}", f"{len(row['seeds'])}", *_beside(row, whole, "held_out", "test"))
            for row in (whole, *others)
        ]
        blocks.append(table(head, rows))
    return "\n".join(blocks)


def _beside(row: Tree, whole: Tree, *what: str) -> Iterator[str]:
    """For each kind of accuracy its mean, and what it differs from the whole's by, over the seeds that both have."""
    for kind in what:
        before = dict(zip(whole["seeds"], whole[kind], strict=True))
        change = [value - before[seed] for seed, value in zip(row["seeds"], row[kind], strict=True) if seed in before]
        yield f"{mean(row[kind]):.1f}"
        error = f" ± {stdev(change) / math.sqrt(len(change)):.2f}" if len(change) > 1 else ""
        yield "" if row is whole or not change else f"{mean(change):+.2f}{error}"


CLASSIFIERS = {
    "auto": "`rte`, auto",
    "logistic": "logistic regression",
    "logistic-cv": "with C by noisy CV",
    "cleanlearning": "CleanLearning",
    "boosting": "gradient boosting",
    "neighbours": "20 neighbours",
}


def vectors(found: Tree) -> str:
    """Small classifiers on vectors: accuracy, wrong labels found, calibration and time, a table each."""
    return "\n".join(
        _classifiers(found["rows"], name, title, digits)
        for name, title, digits in (
            ("accuracy", "test accuracy %", 1),
            ("ap", "AP of finding wrong labels", 3),
            ("ece", "calibration error", 3),
            ("seconds", "processor seconds", 1),
        )
    )


def _classifiers(rows: Sequence[Tree], name: str, title: str, digits: int) -> str:
    """A line for each set and noise, a column for each classifier: mean over the seeds that all of a line have."""
    cells: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for row in rows:
        if row[name] is not None:
            cells.setdefault((row["data"], row["noise"]), {}).setdefault(row["method"], {})[row["seed"]] = row[name]
    lines = []
    for (data, noise), own in cells.items():
        common = sorted(set.intersection(*(set(values) for values in own.values())))
        values = {method: [found[seed] for seed in common] for method, found in own.items()}
        means = {method: round(mean(found), digits) for method, found in values.items()}
        best = max(means.values()) if name in ("accuracy", "ap") else min(means.values())
        texts = [f"{data}, {noise}", f"{len(common)}"]
        for method in CLASSIFIERS:
            text = f"{means[method]:.{digits}f}" if method in means else "–"
            text = f"**{text}**" if len(means) > 1 and means.get(method) == best else text
            several = len(common) > 1 and name == "accuracy" and method in means
            texts.append(f"{text} ± {stdev(values[method]):.{digits}f}" if several else text)
        lines.append(texts)
    return table((title, "seeds", *CLASSIFIERS.values()), lines)


MEASURED: Mapping[str, Callable[[Tree], str]] = {
    "scaling": scaling,
    "pbt-digits": pbt_digits,
    "step": step,
    "precision": precision,
    "frontier": frontier,
    "fast": frontier,
    "parts": parts,
    "vectors": vectors,
    "digits": overview,
    "study": study,
    "tables": tables,
}


def measured(results: Path, name: str) -> str:
    """What stands between the marks of a block."""
    if name not in MEASURED:
        raise ConfigError(f"there is no measurement '{name}'; {did_you_mean(name, MEASURED)}")
    path = results / f"{name}.json"
    return MEASURED[name](read_json(path)) if path.exists() else "Not measured yet.\n"


# ---- what is computed


@dataclass(frozen=True)
class Search:
    """A search of the paper's kind, for an account on paper."""

    net: str = "wrn-28-6"
    members: int = 35
    epochs: int = 300
    images: int = 45_000
    views: tuple[int, ...] = tuple(range(3, 11))

    @property
    def macs(self) -> int:
        """Multiply-adds of one forward pass of one image."""
        return multiply_adds(nets.build(self.net, channels=3, classes=10, size=(32, 32), dropout=0.0), (32, 32), 3)

    @staticmethod
    def passes(views: float) -> float:
        """Work per image, in forward passes: the weak view and N* strong ones forth and back, the teacher forth."""
        return 3 * (1 + views) + 1

    @property
    def steps(self) -> int:
        """Images trained on, in all."""
        return self.members * self.epochs * self.images

    @property
    def flop(self) -> float:
        """Of the whole search, at the mean N*."""
        return self.steps * self.passes(mean(self.views)) * 2 * self.macs


GPUS = (("V100, fp32", 15.7, 0.5), ("V100, fp16 tensor cores", 125.0, 0.25), ("A100, bf16 tensor cores", 312.0, 0.25))
"""name, peak in 10^12 operations per second, the share of it that is assumed to be reached."""


def search_cost(name: str) -> str:
    """The paper's search on eight GPUs, with its arithmetic."""
    search = Search()
    if name != "cifar10-search":
        raise ConfigError(f"there is no account '{name}'; did you mean 'cifar10-search'?")
    average, most = mean(search.views), max(search.views)
    rows = []
    for gpu, peak, share in GPUS:
        hours = search.flop / (peak * 1e12 * share) / 3600
        one = search.epochs * 50_000 * search.passes(most) * 2 * search.macs / (peak * 1e12 * share) / 3600
        speed = search.steps * average / hours / 3600
        rows.append(
            (gpu, f"{peak:g}", f"{100 * share:.0f}", f"{hours:,.0f}", f"{hours / 8:.0f}", f"{one:.0f}", f"{speed:,.0f}")
        )
    head = (
        "",
        "peak TFLOP/s",
        "assumed share %",
        "GPU hours",
        "hours on 8",
        "one manual run",
        "strong views/s per GPU",
    )
    return (
        f"    one forward pass         {search.macs / 1e9:.3f} G multiply-adds = {2 * search.macs / 1e9:.2f} GFLOP\n"
        f"    per image and epoch      (1 + N*) views forth and back (3 passes), the teacher forth: 3 (1 + N*) + 1\n"
        f"                             {search.passes(average):g} passes at the mean N* = {average:g}; "
        f"{search.passes(most):g} at N* = {most}\n"
        f"    images                   {search.members} members x {search.epochs} epochs x {search.images:,} images "
        f"= {search.steps / 1e6:.1f} million\n"
        f"    all                      {search.steps / 1e6:.1f} M x {search.passes(average):g} x "
        f"{2 * search.macs / 1e9:.2f} GFLOP = {search.flop / 1e18:.1f} x 10^18 FLOP\n\n" + table(head, rows)
    )


def refresh(docs: Path) -> list[Path]:
    """Rewrite the blocks of every page in `docs`; returns the pages that were out of date."""
    return update(docs, {"measured": partial(measured, docs.parent / "results"), "cost": search_cost})


if __name__ == "__main__":
    for page in refresh(Path(sys.argv[1]).resolve()):
        print(page)
