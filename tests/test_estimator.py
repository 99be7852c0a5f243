from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from rte import NoiseModel, RobustClassifier
from rte.errors import ConfigError, DataError

SETTINGS = {"views": {"flip": False, "pad": 1}}


@pytest.fixture(scope="module")
def digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = load_digits()
    return (data.images * (255 / 16)).astype(np.uint8), data.target


@pytest.fixture(scope="module")
def fitted(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> RobustClassifier:
    x, y = digits
    noisy = NoiseModel.symmetric(10, 0.3).sample(y[:1200], seed=0)
    return RobustClassifier(epochs=6, batch=64, settings=SETTINGS).fit(x[:1200], noisy)


def test_it_learns_from_noisy_labels(
    fitted: RobustClassifier, digits: tuple[NDArray[np.uint8], NDArray[np.int64]]
) -> None:
    x, y = digits
    assert fitted.score(x[1200:], y[1200:]) > 0.85
    proba = fitted.predict_proba(x[1200:])
    assert proba.shape == (597, 10)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(x[1200:]), fitted.classes_[proba.argmax(1)])


def test_pickle_and_clone(fitted: RobustClassifier, digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, _ = digits
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x[:50]), fitted.predict_proba(x[:50]))
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    assert copy.set_params(epochs=3).epochs == 3


def test_any_hashable_labels(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    keep = np.flatnonzero(y < 3)
    for names in (["zero", "one", "two"], [(0, "a"), (1, "b"), (2, "c")], [10, "ten", None]):
        labels = [names[k] for k in y[keep]]
        model = RobustClassifier("ce", epochs=2, batch=64, settings=SETTINGS).fit(x[keep], labels)
        assert set(model.classes_.tolist() if isinstance(names[0], str | int) else list(model.classes_)) == set(names)
        right = [a == b for a, b in zip(model.predict(x[keep]).tolist(), labels, strict=True)]
        assert np.mean(right) > 0.5


def test_cross_validation(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    scores = cross_val_score(RobustClassifier("ce", epochs=8, batch=32, settings=SETTINGS), x[:600], y[:600], cv=2)
    assert scores.shape == (2,)
    assert scores.min() > 0.5


def test_selection_on_held_out_labels(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    model = RobustClassifier("ce", epochs=3, holdout=0.2, settings=SETTINGS).fit(x[:400], y[:400])
    best = max(entry["val"]["top1"] for entry in model.history_)
    assert best == model.history_[int(np.argmax([entry["val"]["top1"] for entry in model.history_]))]["val"]["top1"]
    assert 0 < model.score(x[400:], y[400:]) <= 1


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((4, 8, 8), np.uint8), [0, 1, 0], "4 images but .* 3 labels"),
        (np.zeros((4, 8, 8), np.uint8), [1, 1, 1, 1], "at least two classes"),
        (np.zeros((0, 8, 8), np.uint8), [], "class"),
        (np.full((4, 8, 8), np.nan), [0, 1, 0, 1], "NaN"),
        (np.zeros((4, 64), np.uint8), [0, 1, 0, 1], "shape"),
        (np.zeros((4, 8, 8), np.int32), [0, 1, 0, 1], "dtype"),
    ],
)
def test_bad_input(x: NDArray[np.uint8], y: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        RobustClassifier(epochs=1).fit(x, y)


def test_wrong_settings_are_named(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    with pytest.raises(ConfigError, match=r"method\.qq.*did you mean 'q'"):
        RobustClassifier(settings={"method": {"qq": 1}}).fit(x, y)
