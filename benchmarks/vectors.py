"""Small classifiers on vectors with wrong labels: `rte` beside what people use, nothing set by the user.

    python benchmarks/vectors.py --data-dir DIR --json results/vectors.json
    python tools/measured.py docs                          # puts the numbers on the page

Accuracy and calibration are on clean test data; the average precision (AP) is that of finding the wrong training
labels; the time is that of the processor, for training and for finding. Rows that are in the JSON file already are not
made again. `cleanlab` is compared where it is installed (`pip install cleanlab==2.9.0`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import plainly
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from vector_sets import Set, sets

from rte import RobustClassifier
from rte.evaluate.calibration import expected_calibration_error
from rte.files import read_json, write_json

Array = NDArray[Any]
Found = tuple[Array, Array]
"""Probabilities of the test data (M, K), and how much each training label is believed (N,)."""
STRENGTHS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]
FOLDS = 5
SCALED = ("breast_cancer", "digits", "letter")
"""Tables, whose columns are standardised first; embeddings are taken as they are."""
LARGE = 100
"""Columns above which gradient boosting is run with one seed alone: it takes minutes."""


def logistic(data: Set, C: float = 1.0) -> Any:
    """Logistic regression as people write it."""
    own = LogisticRegression(C=C, max_iter=1000)
    return make_pipeline(StandardScaler(), own) if data.name in SCALED else own


def believed(model: Any, x: Array, y: Array) -> Array:
    """The probability of each label by models that have not seen it."""
    p = cross_val_predict(clone(model), x, y, cv=StratifiedKFold(FOLDS), method="predict_proba")
    return np.asarray(p[np.arange(len(y)), y])


def plain(data: Set, y: Array, seed: int) -> Found:
    model = logistic(data).fit(data.x, y)
    return model.predict_proba(data.x_test), believed(model, data.x, y)


def searched(data: Set, y: Array, seed: int) -> Found:
    """C by cross-validation on the labels as they are given."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    grid = {"logisticregression__C": STRENGTHS}
    best = GridSearchCV(model, grid, cv=StratifiedKFold(3), scoring="accuracy").fit(data.x, y).best_estimator_
    return best.predict_proba(data.x_test), believed(best, data.x, y)


def boosting(data: Set, y: Array, seed: int) -> Found:
    model = HistGradientBoostingClassifier(random_state=seed).fit(data.x, y)
    trust = model.predict_proba(data.x)[np.arange(len(y)), y]  # five more fits would take as many times as long
    return model.predict_proba(data.x_test), trust


def cleanlab(data: Set, y: Array, seed: int) -> Found:
    from cleanlab.classification import CleanLearning

    model = CleanLearning(logistic(data), seed=seed, cv_n_folds=FOLDS).fit(data.x, y)
    return model.predict_proba(data.x_test), model.get_label_issues()["label_quality"].to_numpy()


def voting(data: Set, y: Array, seed: int, k: int = 20) -> Found:
    scale = StandardScaler() if data.name in SCALED else "passthrough"
    model = make_pipeline(scale, KNeighborsClassifier(k)).fit(data.x, y)
    inner = model[:-1].transform(data.x)
    neighbours = model[-1].kneighbors(inner, k + 1, return_distance=False)[:, 1:]  # the first is itself
    return model.predict_proba(data.x_test), (y[neighbours] == y[:, None]).mean(1)


def ours(data: Set, y: Array, seed: int) -> Found:
    model = RobustClassifier(random_state=seed, device="cpu").fit(data.x, y)
    return model.predict_proba(data.x_test), model.trust_


METHODS: Mapping[str, Callable[[Set, Array, int], Found]] = {
    "auto": ours,
    "logistic": plain,
    "logistic-cv": searched,
    "boosting": boosting,
    "cleanlearning": cleanlab,
    "neighbours": voting,
}


def measure(data: Set, noise: str, method: str, seed: int) -> dict[str, Any]:
    """One row of results."""
    y = data.labels(noise, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a peer that has not converged
        p, trust = METHODS[method](data, y, seed)
    seconds = time.process_time() - began
    wrong = y != data.y
    return {
        "data": data.name,
        "noise": noise,
        "method": method,
        "seed": seed,
        "accuracy": round(100 * float((p.argmax(1) == data.y_test).mean()), 2),
        "ap": round(float(average_precision_score(wrong, -trust)), 4) if wrong.any() else None,
        "ece": round(expected_calibration_error(p, data.y_test), 4),
        "nll": round(-float(np.log(np.clip(p[np.arange(len(p)), data.y_test], 1e-7, 1)).mean()), 4),
        "seconds": round(seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", type=lambda text: text.split(","))
    parser.add_argument("--methods", type=lambda text: text.split(","), default=[*METHODS])
    parser.add_argument("--json", type=Path, required=True)
    args = parser.parse_args()
    key = ("data", "noise", "method", "seed")
    chosen = [one for one in sets(args.data_dir) if args.sets is None or one.name in args.sets]
    for seed in range(args.seeds):
        for data in chosen:
            for noise in data.noises:
                for method in args.methods:
                    rows = read_json(args.json)["rows"] if args.json.exists() else []
                    slow = method == "boosting" and data.x.shape[1] > LARGE
                    if (slow and seed) or (data.name, noise, method, seed) in [tuple(r[k] for k in key) for r in rows]:
                        continue
                    row = measure(data, noise, method, seed)
                    print(row, flush=True)
                    write_json(args.json, {"rows": [*rows, row]})


if __name__ == "__main__":
    plainly(main)
