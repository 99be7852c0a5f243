"""How well an audit finds wrong labels, against what people use, at equal time; and how well it estimates the noise.

    python benchmarks/audit.py train --data-dir DIR --out runs/audit          # resumable; what each run saw, as .npz
    python benchmarks/audit.py score --data-dir DIR --out runs/audit --json results/audit.json

Each run has swift-16 of the preset `laptop` and 6,000 images of CIFAR-10 for so many passes over them. cleanlab has
out-of-sample probabilities of the same network by plain cross-entropy, from five folds: with the same passes in all,
and with five times as many. True labels are used to count what was found, and for nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import plainly
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from rte.audit.evidence import gather
from rte.audit.noise import estimate
from rte.config import RunConfig, resolve
from rte.data.types import Dataset, Split
from rte.evaluate.examiner import Examiner
from rte.files import write_json
from rte.noise.config import parse_noise
from rte.run.build import load_dataset, make_trainer, prepare
from rte.train.sweep import outputs, streamed
from rte.train.trainer import Trainer
from rte.views.loader import Loader

EPOCHS, EXAMPLES, FOLDS = 15, 6_000, 5
HUMAN = {"worst": "worse_label", "random1": "random_label1", "aggregate": "aggre_label"}
SYNTHETIC = {f"symmetric {100 * r:.0f} %": f"symmetric:{r}" for r in (0.0, 0.2, 0.4, 0.6, 0.8)}
SYNTHETIC["Patrini 40 %"] = "patrini-cifar10:0.4"
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Unit:
    """One training, or five folds of it."""

    noise: str
    kind: str
    seed: int
    examples: int = EXAMPLES

    @property
    def name(self) -> str:
        words = (self.noise, self.kind, f"s{self.seed}", *([f"n{self.examples}"] * (self.examples != EXAMPLES)))
        return "-".join(words).replace(" ", "").replace("%", "")


def units() -> list[Unit]:
    """All of them, those first on which most depends."""
    first = [Unit(noise, "auto", 0) for noise in ("random1", "aggregate", "Patrini 40 %", "worst")]
    rivals = [Unit(noise, kind, 0) for kind in ("folds", "ce") for noise in HUMAN]
    rates = [Unit(noise, "auto", 0) for noise in SYNTHETIC]
    more = [Unit(noise, kind, seed) for seed in (1, 2) for noise in HUMAN for kind in ("auto", "ce", "folds")]
    found = [*first, *rivals, *rates, *more, *(Unit(noise, "folds5", 0) for noise in HUMAN)]
    return list(dict.fromkeys(found))


def configured(unit: Unit, args: argparse.Namespace, epochs: int = EPOCHS, method: str | None = None) -> RunConfig:
    """The settings of a unit."""
    noise = SYNTHETIC.get(unit.noise) or f"labels:{args.data_dir.resolve()}/cifar10n.npz:{HUMAN[unit.noise]}"
    tree: dict[str, Any] = {
        "data": {"name": "cifar10"},
        "noise": parse_noise("none" if noise == "symmetric:0.0" else noise),
        "seed": unit.seed,
        "net": {"name": "swift-16", "wider": []},
        "method": {"name": method or unit.kind},
        "train": {"epochs": epochs, "examples": unit.examples, "evaluate_every": 1000},
    }
    return resolve("laptop", tree)


def fit(config: RunConfig, dataset: Dataset) -> tuple[Trainer, Examiner, Arrays]:
    """A trained method, and the sums of margins after each epoch (N, 2, epochs)."""
    trainer, looks = make_trainer(prepare(config, dataset), save=lambda name, state: None)
    trainer.examine = lambda method: {}
    seen, before = [], torch.zeros(())
    while not trainer.finished:
        trainer.fit(until=trainer.epoch + 1)
        after = trainer.margins.table.sum(2)
        seen.append(after - before)
        before = after
    return trainer, looks, {"margins": torch.stack(seen, 2).numpy().astype(np.float32)}


def look(trainer: Trainer, looks: Examiner, split: Split) -> NDArray[np.float32]:
    """The logits of a split, as predictions are made."""
    loader = Loader(split.images, split.y, looks.viewer, seed=0)
    found = outputs(trainer.method, trainer.method.predict, loader, batch=500, device=looks.device, mirror=True)
    return found.numpy()


def features(trainer: Trainer, looks: Examiner, split: Split) -> NDArray[np.float16]:
    """What the reported network makes of images before its last layer."""
    method: Any = trainer.method
    net = method.teacher.module if hasattr(method, "teacher") else method.net
    loader = Loader(split.images, split.y, looks.viewer, seed=0)
    parts = streamed(method, [net.features], loader, batch=500, device=looks.device)
    return torch.cat([part for (part,) in parts]).half().numpy()


def once(unit: Unit, args: argparse.Namespace, data: Dataset) -> Arrays:
    """A run on all examples, and what it saw."""
    config = configured(unit, args)
    kept = prepare(config, data)
    trainer, looks, seen = fit(config, data)
    train = kept.dataset.train
    assert kept.dataset.test is not None
    assert kept.dataset.y_true is not None
    trust = trainer.method.trust(trainer._sweep)
    return {
        **seen,
        "table": trainer.margins.table.numpy(),
        "y": train.y,
        "y_true": kept.dataset.y_true,
        "logits": look(trainer, looks, train),
        "test": look(trainer, looks, kept.dataset.test),
        "test_y": kept.dataset.test.y,
        "features": features(trainer, looks, train),
        "trust": trust.numpy(),
    }


def folds(unit: Unit, args: argparse.Namespace, data: Dataset) -> Arrays:
    """Out-of-sample logits of all examples: five runs, each on four fifths of them."""
    passes = EPOCHS * (5 if unit.kind == "folds5" else 1)
    config = configured(unit, args, max(1, round(passes / (FOLDS - 1))), "ce")
    kept = prepare(config, data).dataset
    assert kept.y_true is not None
    n = len(kept.train)
    part = np.empty(n, np.int64)
    order = np.lexsort((np.random.default_rng(unit.seed).random(n), kept.train.y))
    part[order] = np.arange(n) % FOLDS
    logits = np.empty((n, len(kept.classes)), np.float32)
    plain = replace(config, noise=configured(Unit("symmetric 0 %", "ce", 0), args).noise)
    plain = plain.with_train(examples=None)
    for k in range(FOLDS):
        trainer, looks, _ = fit(plain, kept.only(np.flatnonzero(part != k)))
        logits[part == k] = look(trainer, looks, kept.train.take(np.flatnonzero(part == k)))
    return {"logits": logits, "y": kept.train.y, "y_true": kept.y_true}


def train(args: argparse.Namespace) -> None:
    """Make what is not there yet."""
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    data = load_dataset(configured(Unit("worst", "ce", 0), args), args.data_dir)
    make: dict[str, Callable[[Unit, argparse.Namespace, Dataset], Arrays]] = {"folds": folds, "folds5": folds}
    for unit in units():
        file = args.out / f"{unit.name}.npz"
        if file.exists() or (args.only and args.only not in unit.name):
            continue
        found = make.get(unit.kind, once)(unit, args, replace(data))
        part = file.with_suffix(".part.npz")
        np.savez(part, **found)  # type: ignore[arg-type]
        part.rename(file)
        print(unit.name, flush=True)


def measured(file: Path) -> dict[str, Any]:
    """What a run found, against the true labels."""
    kept = np.load(file, allow_pickle=False)
    y, wrong = kept["y"], kept["y"] != kept["y_true"]
    evidence = gather(y, [torch.from_numpy(kept["logits"])], kept["logits"].shape[1])
    n = int(wrong.sum())
    scores = {"final margin": evidence.margin, "probability": evidence.p_given}
    if "table" in kept:
        evidence = evidence.remembering(np.arange(len(y)), torch.from_numpy(kept["table"]))
        sums = kept["table"].sum(2)
        scores |= {"late margins": evidence.history, "AUM": sums[:, 0] / np.maximum(sums[:, 1], 1)}
        scores |= {"audit": evidence.score}
    other, _ = evidence.best_but(y)
    guess = estimate(evidence)
    out: dict[str, Any] = {"examples": len(y), "wrong": float(wrong.mean())}
    out |= {"rate": guess.rate, "low": guess.low, "high": guess.high, "fewest": guess.fewest, "most": guess.most}
    if not n:
        return out
    out["suggestion"] = float((other == kept["y_true"])[wrong].mean())
    for name, score in scores.items():
        flagged = np.argsort(score, kind="stable")[:n]
        out[name] = {
            "auroc": float(roc_auc_score(wrong, -score)),
            "ap": float(average_precision_score(wrong, -score)),
            "missed": float(1 - wrong[flagged].mean()),
        }
    return out


def score(args: argparse.Namespace) -> None:
    """What all runs that are there have found."""
    rows = {file.stem: measured(file) for file in sorted(args.out.glob("*.npz")) if ".part" not in file.name}
    for name, row in rows.items():
        print(name, row)
    if args.json:
        write_json(args.json, rows)


def main() -> None:
    """Words in, words out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "score"])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/audit"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="units whose name has this in it")
    args = parser.parse_args()
    {"train": train, "score": score}[args.what](args)


if __name__ == "__main__":
    plainly(main)
