"""`RobustClassifier`: the scikit-learn face of the same trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rte.config import RunConfig, merge, resolve
from rte.data.arrays import as_pixels, from_arrays
from rte.data.types import ArrayImages
from rte.errors import DataError
from rte.run.build import InputSpec, build_method, make_trainer, prepare
from rte.run.predictor import Predictor
from rte.train.device import choose_device


class RobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An image classifier that learns from labels of which an unknown share is wrong.

    Images are arrays (N, H, W) or (N, H, W, C), uint8 or floats in 0..1; labels may be any hashable values.

    Parameters
    ----------
    method : name of the method, see `rte list methods`
    preset : settings to start from, a name or a TOML file
    epochs, batch, net, holdout : shorthands for the settings most often changed; None keeps the preset's
    settings : any other settings as a tree, such as {"method": {"q": 0.3}, "views": {"flip": False}}
    device : "auto", "cpu", "cuda", "mps"
    random_state : the seed
    """

    def __init__(
        self,
        method: str = "rte",
        *,
        preset: str = "default",
        epochs: int | None = None,
        batch: int | None = None,
        net: str | None = None,
        holdout: float | None = None,
        settings: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.preset = preset
        self.epochs = epochs
        self.batch = batch
        self.net = net
        self.holdout = holdout
        self.settings = settings
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RobustClassifier:
        """Train on images and their given labels."""
        classes, codes = _encode(y)
        dataset = from_arrays(X, codes, classes=[str(label) for label in classes], name="the training data")
        config = self._config(len(dataset.train))
        prepared = prepare(config, dataset)
        kept: dict[str, Any] = {}

        def keep(name: str, state: dict[str, Any]) -> None:
            if name == "selected":  # the trainer goes on changing the live tensors
                kept.update({key: value.clone() for key, value in state["method"].items()})

        trainer, _ = make_trainer(prepared, save=keep)
        trainer.fit()
        state = kept or trainer.method.state_dict()
        self.classes_ = classes
        self.history_ = trainer.history
        self.n_features_in_ = int(np.prod(np.shape(X)[1:]))
        self.config_ = config.tree()
        self.spec_ = prepared.spec
        self.state_ = {key: value.detach().cpu().numpy() for key, value in state.items()}
        self._predictor: Predictor | None = None
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities (N, K), columns in the order of `classes_`."""
        check_is_fitted(self)
        if self._predictor is None:
            self._predictor = self._restore()
        return self._predictor.probabilities(ArrayImages(as_pixels(X, "the images")))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each image."""
        best = self.predict_proba(X).argmax(1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def _config(self, n: int) -> RunConfig:
        train = {"epochs": self.epochs, "batch": self.batch, "holdout": self.holdout, "device": self.device}
        options: dict[str, Any] = {
            "data": {"name": "arrays", "path": "given as arrays"},
            "method": {"name": self.method},
            "seed": self.random_state,
            "noise": {"name": "none"},
            "train": {key: value for key, value in train.items() if value is not None},
        }
        if self.net is not None:
            options["net"] = {"name": self.net}
        config = resolve(self.preset, merge(options, self.settings or {}))
        if self.batch is None and config.train.batch > n // 4:
            config = config.with_train(batch=max(1, n // 4))  # the preset's batch was not made for so small a set
        return config

    def _restore(self) -> Predictor:
        config, spec, device = RunConfig.from_tree(self.config_), self.spec_, choose_device(self.device)
        assert isinstance(spec, InputSpec)
        method = build_method(config, spec, torch.zeros(spec.n, dtype=torch.int64), device)
        method.load_state_dict({key: torch.from_numpy(value) for key, value in self.state_.items()})
        return Predictor(method.eval(), config, spec, device)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_predictor" in state:
            state["_predictor"] = None
        return state


def _encode(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct labels, sorted or else in order of appearance, and each label's place among them."""
    values = list(y)
    try:
        distinct = sorted(set(values))
    except TypeError:
        distinct = list(dict.fromkeys(values))
    if len(distinct) < 2:
        raise DataError(f"the labels have {len(distinct)} class; a classifier needs examples of at least two classes.")
    place = {value: k for k, value in enumerate(distinct)}
    simple = all(isinstance(value, str | int | float | np.generic) for value in distinct)
    classes = np.array(distinct) if simple else np.empty(len(distinct), dtype=object)
    if not simple:
        classes[:] = distinct
    return classes, np.array([place[value] for value in values], dtype=np.int64)
