"""Tables and texts with wrong labels: `auto` with nothing set, beside what people use.

    python benchmarks/tables.py --data-dir DATA --json results/tables.json

DATA holds adult.csv.gz, letter.csv.gz, banking77_train.csv.gz and banking77_test.csv.gz. Symmetric noise, injected into
the training labels, the same for all; test accuracy after the last epoch, one seed. What is done is not done again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from rte.config import RunConfig, resolve
from rte.data.rows import TableRows
from rte.errors import Found
from rte.evaluate.calibration import expected_calibration_error
from rte.files import write_json
from rte.run.build import Prepared, load_dataset, make_trainer, prepare
from rte.run.frozen import Keep

NOISES = (0.0, 0.2, 0.4)


def sets(data: Path, work: Path) -> dict[str, dict[str, Any]]:
    """The data section of each set; files without a column `split` get one."""
    joined = work / "banking77.csv"
    if not joined.is_file():
        parts = {split: read(data / f"banking77_{split}.csv.gz") for split in ("train", "test")}
        write(joined, [{**row, "split": split} for split, rows in parts.items() for row in rows])
    letters = work / "letter.csv"
    if not letters.is_file():
        found = read(data / "letter.csv.gz")
        write(letters, [{**row, "split": "train" if i < 16_000 else "test"} for i, row in enumerate(found)])
    return {
        "adult": {"name": "tabular", "path": str(data / "adult.csv.gz"), "columns": {"label": "income"}},
        "letter": {"name": "tabular", "path": str(letters), "columns": {"label": "letter"}},
        "banking77": {"name": "text", "path": str(joined), "columns": {"label": "category", "text": "text"}},
    }


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)


def configure(data: dict[str, Any], noise: float, **train: Any) -> RunConfig:
    injected = {"name": "symmetric", "ratio": noise} if noise else {"name": "none"}
    settings = {"device": "cpu", "threads": 1, "evaluate_every": 1000, **train}
    return resolve("vectors", {"data": data, "noise": injected, "method": {"name": "auto"}, "train": settings})


def ours(prepared: Prepared) -> dict[str, Any]:
    trainer, _ = make_trainer(prepared, save=lambda name, state: None)
    trainer.fit()
    scores = trainer.history[-1]["test"]
    return {"net": prepared.config.net.name, "epochs": trainer.epoch, "test": scores["top1"], "ece": scores["ece"]}


def peers(prepared: Prepared) -> dict[str, Any]:
    """What is fitted beside: each name with its estimator."""
    source = prepared.dataset.train.images
    if not isinstance(source, TableRows):
        return {
            "logistic regression, C = 1": LogisticRegression(C=1.0, max_iter=1000),
            "logistic regression, C = 10": LogisticRegression(C=10.0, max_iter=1000),
            "20 nearest neighbours": KNeighborsClassifier(20),
        }
    words = [c for c, column in enumerate(source.columns) if column.kind == "category"]
    numbers = [c for c, column in enumerate(source.columns) if column.kind == "number"]
    encoded = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words)
    )
    found = {
        "logistic regression": make_pipeline(encoded, LogisticRegression(max_iter=1000)),
        "gradient boosting": HistGradientBoostingClassifier(categorical_features=words, random_state=0),
    }
    return found if words else {**found, "10 nearest neighbours": KNeighborsClassifier(10)}


def theirs(estimator: Any, prepared: Prepared) -> dict[str, Any]:
    data = prepared.dataset
    assert data.test is not None
    x, x_test = (part.images.fetch(np.arange(len(part))) for part in (data.train, data.test))
    estimator.fit(x, data.train.y)
    probs = estimator.predict_proba(x_test)
    return {
        "test": float((probs.argmax(1) == data.test.y).mean()),
        "ece": expected_calibration_error(probs, data.test.y),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument(
        "--work", type=Path, default=Path("runs/tables"), help="where joined tables and vectors are kept"
    )
    parser.add_argument("--json", type=Path, default=Path("results/tables.json"))
    parser.add_argument("--only", nargs="*", help="sets by name")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", Found)
    torch.set_num_threads(1)
    about = "python benchmarks/tables.py: test accuracy after the last epoch, seed 0, symmetric noise, one core"
    record = json.loads(given.json.read_text()) if given.json.is_file() else {"about": about, "runs": []}
    done = {(run["data"], run["noise"], run["method"]) for run in record["runs"]}
    for name, data in sets(given.data_dir, given.work).items():
        for noise in NOISES if not given.only or name in given.only else ():
            config = configure(data, noise)
            prepared = prepare(config, load_dataset(config, None), Keep.beside(given.work / "run"))
            fits = {"auto": lambda p=prepared: ours(p)}
            fits |= {peer: lambda e=e, p=prepared: theirs(e, p) for peer, e in peers(prepared).items()}
            for method, fit in fits.items():
                if (name, noise, method) in done:
                    continue
                began = time.process_time()
                run = {"data": name, "noise": noise, "method": method, **fit()}
                run["seconds"] = round(time.process_time() - began, 1)
                record["runs"].append({k: round(v, 4) if isinstance(v, float) else v for k, v in run.items()})
                write_json(given.json, record)
                print(f"{name:<10} {noise:.1f} {method:<28} {100 * run['test']:.1f} in {run['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
