"""`RobustClassifier`: the scikit-learn face of the same trainer."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rte import registry
from rte.code import CodeChanged, changes
from rte.config import RunConfig, Tree, merge, resolve
from rte.data.given import as_examples, as_labels, encode
from rte.data.rows import TableRows
from rte.data.types import ArrayImages, ArrayVectors, Dataset, Images, Source, Split
from rte.errors import ConfigError, DataError, InvalidConfig, InvalidData
from rte.report.choices import chosen
from rte.report.progress import Bars
from rte.run.audit import Auditor
from rte.run.budget import by_clock, parse_budget, with_budget, within
from rte.run.build import Prepared, build_method, make_trainer, prepare
from rte.run.inputs import TableSpec
from rte.run.predictor import Predictor
from rte.run.suspects import suspects
from rte.train.device import choose_device
from rte.train.distributed import World
from rte.train.trainer import Interrupted, Observer, Trainer

PARTS = ("method", "net")


R = TypeVar("R")
P = ParamSpec("P")


def _value_errors(method: Callable[P, R]) -> Callable[P, R]:
    """Mistakes of the caller are ValueErrors, as scikit-learn wants them."""

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (InvalidData, InvalidConfig):
            raise
        except DataError as error:
            raise InvalidData(*error.args) from None
        except ConfigError as error:
            raise InvalidConfig(*error.args) from None

    return checked


class RobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An image classifier that learns from labels of which an unknown share is wrong.

    Examples are vectors (N, D), such as embeddings; a pandas DataFrame of numbers and categories, of which some may be
    missing; or images, arrays (N, H, W) or (N, H, W, C), uint8 or floats in 0..1, or a list of paths of image files.
    The shape tells which. Labels are of one kind: integers, strings, booleans, or any hashable values of one type.

    Parameters
    ----------
    method : name of the method (see `rte list methods`), "my.py:MyMethod", or a class derived from Method; None: the
        preset's, or `auto`
    preset : settings to start from, a name or a TOML file; None: what is not given is chosen by the data and the
        machine, as `rte fit` does, for ten minutes at most; `verbose` says what
    epochs, batch, net, holdout : shorthands for the settings most often changed; None keeps the preset's. net may also
        be "my.py:build", or a function or class that makes a network of channels, classes, size and dropout
    budget : time to train for instead of epochs, such as "10m", or seconds
    settings : any other settings as a tree, such as {"method": {"q": 0.3}, "views": {"flip": False}}; they count most
    device : "auto", "cpu", "cuda", "mps"
    random_state : the seed, a NumPy RandomState to draw it from, or None for another one each time
    verbose : whether to show a progress bar

    Attributes
    ----------
    classes_ : the labels that there are (K,), in the order of the columns of `predict_proba`
    trust_ : of vectors and tables, how much a label of `fit` is believed (N,), 0 to 1: look at the lowest first
    history_ : what was measured after epochs
    """

    def __init__(
        self,
        method: str | type[Any] | None = None,
        *,
        preset: str | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        net: str | Callable[..., Any] | None = None,
        holdout: float | None = None,
        budget: str | float | None = None,
        settings: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.preset = preset
        self.epochs = epochs
        self.batch = batch
        self.net = net
        self.holdout = holdout
        self.budget = budget
        self.settings = settings
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @_value_errors
    def fit(self, X: Any, y: Any, **rejected: Any) -> RobustClassifier:
        """Train on images and their given labels. torch's own random numbers go on as if nothing had happened."""
        started = time.monotonic()
        if rejected:
            raise ConfigError(
                f"RobustClassifier.fit takes images and labels only, no {', '.join(rejected)}: which examples count "
                "how much is what the method finds out."
            )
        examples = as_examples(X)
        classes, codes = encode(as_labels(y))
        if len(examples) != len(codes):
            raise DataError(f"there are {len(examples)} examples but {len(codes)} labels; give one label for each.")
        dataset = Dataset("the training data", tuple(str(label) for label in classes), Split(examples, codes))
        config = self._config(dataset)
        with _generators_kept(choose_device(config.train.device)):
            trainer, prepared, state, trust = self._train(prepare(config, dataset), started)
        self.classes_ = classes
        self.history_ = trainer.history
        self.shape_ = _shape(examples)
        self.n_features_in_ = int(np.prod(self.shape_ or (*prepared.spec.size, prepared.spec.channels)))
        self.config_ = prepared.config.tree()
        self.code_ = prepared.config.code
        self.parts_ = {kind: given for kind in PARTS if not isinstance(given := getattr(self, kind), str | None)}
        self.spec_ = prepared.spec
        self.n_, self.seen_ = len(codes), (prepared.train_rows, trainer.margins.table.cpu().numpy())
        if trust is not None:
            self.trust_ = trust
        self.state_ = {key: value.detach().cpu().numpy() for key, value in state.items()}
        self._predictor: Predictor | None = self._restore()
        return self

    @_value_errors
    def suspects(self, X: Any, y: Any) -> dict[str, NDArray[Any]]:
        """Which labels look wrong, and what they should be: the columns of audit.csv, most suspicious label first.

        For the X and y of fit, margins that training saw count too; any other labelled examples may be given.
        """
        labels = as_labels(y)
        return suspects(self.predict_proba(X), labels, self.classes_, self.seen_ if len(labels) == self.n_ else None)

    @_value_errors
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities (N, K), columns in the order of `classes_`."""
        check_is_fitted(self)
        columns = self.spec_.columns if isinstance(self.spec_, TableSpec) else None
        examples = as_examples(X, self.spec_.channels, columns)
        shape = _shape(examples)
        if isinstance(examples, ArrayVectors) and examples.dim != self.n_features_in_:
            raise DataError(
                f"X has {examples.dim} features, but RobustClassifier is expecting {self.n_features_in_} features as "
                "input; give the columns that fit was given."
            )
        if shape is not None and self.shape_ is not None and shape != self.shape_:
            raise DataError(f"the examples are of shape {shape}, those of fit were of shape {self.shape_}; give those.")
        if self._predictor is None:
            self._predictor = self._restore()
        return self._predictor.probabilities(examples)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each image."""
        best = self.predict_proba(X).argmax(1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def _train(
        self, prepared: Prepared, started: float
    ) -> tuple[Trainer, Prepared, dict[str, torch.Tensor], NDArray[np.float32] | None]:
        """The trained trainer, what it was given, the state to predict with, and but for images the trust in labels."""
        if prepared.config.train.budget is not None:
            prepared = within(prepared, started, World())
        seconds = prepared.config.train.budget
        kept: dict[str, Any] = {}

        def keep(name: str, state: dict[str, Any]) -> None:
            if name == "selected":  # the trainer goes on changing the live tensors
                kept.update({key: value.clone() for key, value in state["method"].items()})

        with _watching(self.verbose, prepared.config.method_label) as observer:
            trainer, examiner = make_trainer(prepared, save=keep, observer=observer)
            if seconds is not None:
                trainer.timeline = by_clock(trainer, examiner, seconds, started, None)
            _until_the_end(trainer)
            trust = None
            if not isinstance(prepared.dataset.train.images, Images):  # these would take as long as half an epoch
                trainer.method.load_state_dict(kept or trainer.method.state_dict())
                with torch.no_grad():
                    looks = trainer.method, prepared.config, prepared.dataset, examiner, trainer.margins.table
                    trust = Auditor(*looks).evidence().score.astype(np.float32)
        return trainer, prepared, kept or trainer.method.state_dict(), trust

    def _config(self, dataset: Dataset) -> RunConfig:
        n, kind = len(dataset.train), _kind(dataset.train.images)
        train = {"epochs": self.epochs, "batch": self.batch, "holdout": self.holdout, "device": self.device}
        options: Tree = {
            "data": {"name": kind, "path": "given as arrays"},
            "seed": _seed(self.random_state),
            "noise": {"name": "none"},
            "train": {key: value for key, value in train.items() if value is not None},
        }
        if self.method is not None:
            options["method"] = {"name": self._name("method")}
        if self.net is not None:
            options["net"] = {"name": self._name("net"), "wider": []}
        if self.budget is not None and self.epochs is not None:
            raise ConfigError("budget and epochs each set the length of the training; give one of them.")
        options = _plain(merge(options, self.settings or {}))
        seconds = None if self.budget is None else parse_budget(str(self.budget))
        preset = self.preset
        if preset is None:
            preset, options, seconds = chosen(dataset, options, seconds, self.epochs, self.device, verbose=self.verbose)
        config = resolve(preset, options)
        if "batch" not in options["train"] and config.train.batch > n // 4:
            config = config.with_train(batch=max(1, n // 4))  # the preset's batch was not made for so small a set
        return config if seconds is None else with_budget(config, seconds)

    def _name(self, kind: Any) -> str:
        """The name of a method or network, which may be given as a class or function."""
        given = getattr(self, kind)
        return given if isinstance(given, str) else registry.adopt(kind, given)

    def _restore(self) -> Predictor:
        tree = dict(self.config_)
        for kind, given in self.parts_.items():
            tree[kind] = {**tree[kind], "name": registry.adopt(kind, given)}  # type: ignore[arg-type]
        config = RunConfig.from_tree(tree, trust=True)  # of a pickle, which could run anything
        for text in changes(self.code_, config.code):
            warnings.warn(text, CodeChanged, stacklevel=5)
        spec, device = self.spec_, choose_device(self.device)
        with _generators_kept(device):
            method = build_method(config, spec, torch.zeros(spec.n, dtype=torch.int64), device)
        method.load_state_dict({key: torch.from_numpy(value) for key, value in self.state_.items()})
        return Predictor.of(method.eval(), config, spec, device, None)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_predictor" in state:
            state["_predictor"] = None
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, True
        return tags


# ---- what the training leaves alone


def _until_the_end(trainer: Trainer) -> None:
    """Train; an interrupt is one for the caller too, whose search or loop would go on otherwise."""
    with suppress(Interrupted):
        trainer.fit()
    if trainer.stop == "SIGTERM":
        signal.raise_signal(signal.SIGTERM)
    if trainer.stop is not None:
        raise KeyboardInterrupt


@contextmanager
def _generators_kept(device: torch.device) -> Iterator[None]:
    """Within, torch's generators may be seeded; afterwards they are what they were."""
    on_mps = torch.mps.get_rng_state() if device.type == "mps" else None
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        if on_mps is not None:
            torch.mps.set_rng_state(on_mps)


@contextmanager
def _watching(verbose: bool, title: str) -> Iterator[Observer | None]:
    if not verbose:
        yield None
        return
    from rich.console import Console

    with Bars(Console()) as bars:
        yield bars.run(title)


# ---- what is given


def _plain(value: Any) -> Any:
    """Settings without NumPy's types, which are not those that settings declare."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _seed(random_state: Any) -> int:
    """A whole number is the seed; a RandomState is drawn from, NumPy's own if none is given, as scikit-learn does."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        raise ConfigError(f"random_state is {random_state!r}; give a whole number, a RandomState or None.")
    return int(check_random_state(random_state).randint(2**31 - 1))


def _kind(examples: Source) -> str:
    """The name of the kind of data."""
    return {ArrayVectors: "vectors", TableRows: "tabular"}.get(type(examples), "arrays")


def _shape(examples: Source) -> tuple[int, ...] | None:
    """Of each example, where all have the same."""
    if isinstance(examples, ArrayVectors):
        return (examples.dim,)
    if isinstance(examples, TableRows):
        return (len(examples.columns),)
    return tuple(examples.pixels.shape[1:]) if isinstance(examples, ArrayImages) else None
