"""The one place where a trained method meets the truth: test labels, true training labels.

Training code holds an `Examiner` only as a function from a method to numbers, so it can report but not peek.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte.data.types import ArrayImages, Dataset, Labels, Pixels, Source, as_images
from rte.errors import DataError
from rte.evaluate.calibration import binned
from rte.evaluate.corruptions import Step, evaluate_corruptions, mean_corruption_error
from rte.evaluate.memorisation import histograms, loss_split, memorisation
from rte.evaluate.metrics import log_sum_exp, score
from rte.methods.base import Method, Predict
from rte.noise.matrix import transition_counts
from rte.train.sweep import all_outputs
from rte.views.loader import Loader
from rte.views.viewer import Viewer

GLANCE = 1000
"""Images by which the speed of predictions is foreseen, and the noise of held-out labels is told."""
SURE = 0.2
"""The share of the held-out examples whose predictions count as confident."""


@dataclass(frozen=True)
class Examiner:
    """Scores a method on the test split, on held-out noisily labelled data, and on the training labels themselves."""

    dataset: Dataset
    train_rows: NDArray[np.int64]
    val_rows: NDArray[np.int64]
    viewer: Viewer
    device: torch.device
    batch: int = 500
    threads: int = 1
    most: int | None = None
    """Training examples that are looked at, evenly spread; None: all."""

    def __call__(self, method: Method) -> dict[str, dict[str, float]]:
        """{"test": top1, top5, nll, ece of what is reported; "student": of a further network; "val": noisy labels}."""
        scores: dict[str, dict[str, float]] = {}
        if (test := self.dataset.test) is not None and len(test):
            predicts = {"test": method.predict, **method.networks()}
            found = self._all_logits(method, list(predicts.values()), test.images, test.y)
            scores = {name: score(logits, test.y) for name, logits in zip(predicts, found, strict=True)}
        if len(self.val_rows):
            held = self.dataset.train.take(self.val_rows)
            scores["val"] = score(self._logits(method, method.predict, held.images, held.y), held.y)
        return scores

    @property
    def scores(self) -> bool:
        """Whether there is anything to score a method on."""
        return bool(self.dataset.test is not None and len(self.dataset.test)) or len(self.val_rows) > 0

    def looks(self, networks: int, *, final: bool, audited: bool = False) -> int:
        """Examples that a network looks at in an evaluation, or in the last one and all that follows it.

        `audited`: also in an audit of all training labels, and for what `findings` tells.
        """
        test = 0 if self.dataset.test is None else len(self.dataset.test)
        looks = test * (1 + networks) + len(self.val_rows)
        if final and self.dataset.y_true is not None:
            looks += len(self.train_rows[:: self._every])
        if final and audited:
            looks += len(self.dataset.train) + test
        return looks * self.viewer.looks

    def glance(self, method: Method) -> float:
        """Seconds of a prediction, by one batch of training images; of any method, before it has learnt anything."""
        train = self.dataset.train.take(self.train_rows[:GLANCE])
        began = time.perf_counter()
        with torch.autocast(self.device.type, enabled=False):  # evaluations are in single precision
            self._logits(method, method.predict, train.images, train.y)
        return (time.perf_counter() - began) / len(train) / self.viewer.looks

    def memorisation(self, method: Method) -> dict[str, Any]:
        """What became of the wrongly labelled training examples; empty where the truth is unknown."""
        if self.dataset.y_true is None:
            return {}
        rows = self.train_rows[:: self._every]
        train = self.dataset.train.take(rows)
        predicted = self._logits(method, method.predict, train.images, train.y).argmax(1)
        return memorisation(predicted, train.y, self.dataset.y_true[rows])

    def wrong(self) -> float | None:
        """The share of wrong labels among those trained on; None where the truth is unknown."""
        if self.dataset.y_true is None:
            return None
        rows = self.train_rows
        return float((self.dataset.train.y[rows] != self.dataset.y_true[rows]).mean())

    @property
    def _every(self) -> int:
        """Of how many training examples one is looked at."""
        return 1 if self.most is None else max(1, len(self.train_rows) // self.most)

    def contradicted(self, method: Method) -> tuple[float, int]:
        """Of the most confident predictions for held-out examples: the share that their labels contradict, and how
        many these are. Labels that nobody has learnt cannot have been memorised."""
        held = self.dataset.train.take(self.val_rows[:GLANCE])
        logits = self._logits(method, method.predict, held.images, held.y)
        confidence = logits.max(1) - log_sum_exp(logits)
        sure = np.argsort(-confidence, kind="stable")[: math.ceil(SURE * len(held))]
        return float((logits[sure].argmax(1) != held.y[sure]).mean()), len(sure)

    def confusion(self, method: Method, on: str = "test") -> NDArray[np.int64]:
        """counts[a, b] (K, K): how often true class a is taken for b, on the test or on the training images."""
        split, truth = self.dataset.test, None if self.dataset.test is None else self.dataset.test.y
        if on == "train":
            split, truth = self.dataset.train, self.dataset.y_true
        if split is None or truth is None or not len(split):
            raise DataError(f"{self.dataset.name} has no {on} images with true labels to count confusions on.")
        predicted = self._logits(method, method.predict, split.images, split.y).argmax(1)
        return transition_counts(truth, predicted, len(self.dataset.classes))

    def corruptions(
        self, method: Method, *, official: Path | None = None, progress: Callable[[Step], None] | None = None
    ) -> dict[str, Any]:
        """{"errors": {corruption: error at severities 1 to 5}, "mce": their mean} on the test images, corrupted."""
        test = self.dataset.test
        if test is None or not len(test):
            raise DataError(f"{self.dataset.name} has no test images to corrupt; give it a test split.")

        def predict(pixels: Pixels) -> NDArray[np.int64]:
            logits = self._logits(method, method.predict, ArrayImages(pixels), np.zeros(len(pixels), np.int64))
            predicted: NDArray[np.int64] = logits.argmax(1)
            return predicted

        errors = evaluate_corruptions(
            predict,
            as_images(test.images),
            test.y,
            seed=0,
            threads=os.cpu_count() or 1,
            official=official,
            progress=progress,
        )
        return {"mce": mean_corruption_error(errors), "errors": errors}

    def reliability(self, method: Method) -> dict[str, Any]:
        """The reliability diagram of what is reported on the test set, and its calibration error `ece`."""
        test = self.dataset.test
        if test is None or not len(test):
            raise DataError(f"{self.dataset.name} has no test images to calibrate on; give it a test split.")
        return _diagram(self._logits(method, method.predict, test.images, test.y), test.y)

    def findings(self, method: Method) -> dict[str, Any]:
        """`reliability` and `confusion` on the test set from one look at it; empty where there is none."""
        test = self.dataset.test
        if test is None or not len(test):
            return {}
        logits = self._logits(method, method.predict, test.images, test.y)
        counts = transition_counts(test.y, logits.argmax(1), len(self.dataset.classes))
        return {"reliability": _diagram(logits, test.y), "confusion": counts.tolist()}

    def losses(self, method: Method, bins: int = 60, top: float = 12.0) -> dict[str, Any]:
        """Histograms of -log p_y over 0..top (the last bin holds all above) for right and for wrong given labels."""
        if self.dataset.y_true is None:
            raise DataError(
                f"the true labels of {self.dataset.name} are unknown; no loss can be called wrong or right."
            )
        train = self.dataset.train.take(self.train_rows)
        logits = self._logits(method, method.predict, train.images, train.y)
        values = log_sum_exp(logits) - logits[np.arange(len(train)), train.y]
        return histograms(loss_split(values, train.y, self.dataset.y_true[self.train_rows])._asdict(), bins, top)

    def truth_of(self, rows: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Whether the given label of each of these training examples is wrong; None where the truth is unknown."""
        if self.dataset.y_true is None:
            return None
        wrong: NDArray[np.bool_] = self.dataset.train.y[rows] != self.dataset.y_true[rows]
        return wrong

    def _logits(self, method: Method, predict: Predict, source: Source, y: Labels) -> NDArray[np.float32]:
        return self._all_logits(method, [predict], source, y)[0]

    def _all_logits(
        self, method: Method, predicts: Sequence[Predict], source: Source, y: Labels
    ) -> list[NDArray[np.float32]]:
        pin = self.device.type == "cuda"
        loader = Loader(source, y, self.viewer, seed=0, threads=self.threads, pin=pin)
        found = all_outputs(method, predicts, loader, batch=self.batch, device=self.device, mirror=True)
        return [logits.numpy() for logits in found]


def _diagram(logits: NDArray[np.float32], y: Labels) -> dict[str, Any]:
    confidence = np.exp(logits.max(1) - log_sum_exp(logits))
    bins = binned(confidence, logits.argmax(1) == y)
    means = {"confidence": bins.confidence, "accuracy": bins.accuracy}
    listed = {name: [None if np.isnan(v) else float(v) for v in values] for name, values in means.items()}
    return {"ece": bins.error, "edges": bins.edges.tolist(), **listed, "count": bins.count.tolist()}
