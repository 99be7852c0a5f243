"""`RobustClassifier` on vectors: what scikit-learn asks of an estimator, and real data."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from rte import NoiseModel, RobustClassifier
from rte.errors import DataError
from rte.evaluate.calibration import expected_calibration_error

SKIPPED = {"check_array_api_input"}
"""Checks of scikit-learn that it skips itself: it needs the variable SCIPY_ARRAY_API."""
SMALL = {"net": {"name": "mlp-16"}, "train": {"lr": 0.02, "evaluate_every": 100}}


def test_scikit_learn_finds_nothing_wrong() -> None:
    estimator = RobustClassifier("ce", epochs=25, device="cpu", settings=SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks of what is deprecated warn
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= SKIPPED
    assert len(results) > 40


def test_it_is_robust_in_a_pipeline() -> None:
    x, y = load_digits(return_X_y=True)
    wrong = NoiseModel.symmetric(10, 0.4).sample(y[:1300], seed=0)
    model = make_pipeline(StandardScaler(), RobustClassifier(epochs=10, device="cpu"))
    model.fit(x[:1300], wrong)
    assert model.score(x[1300:], y[1300:]) > 0.85
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(x[1300:]), model.predict_proba(x[1300:]))


def test_cross_validation_and_names_of_classes() -> None:
    data = load_breast_cancer()
    names = data.target_names[data.target]
    scores = cross_val_score(RobustClassifier("gce", epochs=8, device="cpu"), data.data, names, cv=3)
    assert scores.min() > 0.9


def test_the_shape_tells_vectors_from_images() -> None:
    x, y = load_digits(return_X_y=True)
    vectors = RobustClassifier("ce", epochs=1, device="cpu").fit(x, y)
    images = RobustClassifier("ce", epochs=1, device="cpu").fit((x / 16).reshape(-1, 8, 8), y)
    assert (vectors.config_["data"]["name"], images.config_["data"]["name"]) == ("vectors", "arrays")
    assert (vectors.n_features_in_, images.n_features_in_) == (64, 64)
    with pytest.raises(DataError, match="X has 63 features, but RobustClassifier is expecting 64 features"):
        vectors.predict(x[:, :63])
    with pytest.raises(ValueError, match="X contains NaN"):
        vectors.predict(np.full((2, 64), np.nan))


def test_trust_finds_wrong_labels_and_predictions_are_calibrated_for_the_right_ones() -> None:
    x, y = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.3, random_state=0)
    wrong = NoiseModel.symmetric(10, 0.4).sample(y, seed=0)
    model = RobustClassifier(net="linear", device="cpu").fit(x, wrong)
    assert model.trust_.shape == y.shape
    assert average_precision_score(wrong != y, -model.trust_) > 0.95
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(x, wrong)
    ours, theirs = (expected_calibration_error(m.predict_proba(x_test), y_test) for m in (model, peer))
    assert ours < 0.5 * theirs
    assert model.score(x_test, y_test) > peer.score(x_test, y_test)
