"""`RobustClassifier` on DataFrames with numbers, words and missing values."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from rte import NoiseModel, RobustClassifier
from rte.errors import DataError

N = 900


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The class depends on a number, two categories, and whether a value is missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.lognormal(2, 1, N),
            "colour": rng.choice(["red", "green", "blue"], N),
            "code": pd.Categorical(rng.integers(0, 3, N)),
            "score": np.where(rng.random(N) < 0.3, np.nan, rng.normal(size=N)),
        }
    )
    score = (frame["size"] > 7).astype(int) + (frame["colour"] == "red") + (frame["code"] == 2) + frame["score"].isna()
    return frame, (score >= 2).to_numpy().astype(int)


@pytest.mark.parametrize("seed", range(3))
def test_it_learns_the_rule_in_spite_of_wrong_labels(seed: int) -> None:
    frame, y = table(seed)
    wrong = NoiseModel.symmetric(2, 0.25).sample(y[:600], seed=seed)
    model = RobustClassifier(epochs=8, device="cpu", random_state=seed).fit(frame[:600], wrong)
    assert model.score(frame[600:], y[600:]) > 0.85  # three quarters of the labels are right, 0.6 is the larger class


def test_columns_are_those_of_fit() -> None:
    frame, y = table(0)
    model = RobustClassifier("ce", epochs=1, device="cpu").fit(frame, y)
    assert (model.n_features_in_, model.config_["data"]["name"]) == (4, "tabular")
    expected = model.predict_proba(frame)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame[["score", "code", "size", "colour"]]), expected)
    with pytest.raises(
        DataError, match="X has no column 'colour', which the model was trained on; did you mean 'color'"
    ):
        model.predict(frame.rename(columns={"colour": "color"}))
    with pytest.raises(DataError, match="X is a ndarray, but fit was given a DataFrame"):
        model.predict(frame.to_numpy())
    new = frame.assign(colour="violet")
    assert np.isfinite(model.predict_proba(new)).all(), "a category that was never seen says nothing"
