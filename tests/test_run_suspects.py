"""`RobustClassifier.suspects`: the rows of an audit, for examples in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rte import RobustClassifier
from rte.errors import DataError
from rte.run.suspects import suspects


def test_wrong_labels_of_digits_come_first_with_their_right_ones() -> None:
    pixels, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(truth)) < 0.2
    names = np.array([f"digit {k}" for k in range(10)])
    y = names[np.where(wrong, (truth + rng.integers(1, 10, len(truth))) % 10, truth)]
    model = RobustClassifier("gce", epochs=8, random_state=0).fit(pixels / 16.0, y)
    found = model.suspects(pixels / 16.0, y)
    n = int(wrong.sum())
    assert wrong[found["index"][:n]].mean() > 0.85
    first = found["index"][:n][wrong[found["index"][:n]]]
    assert (found["predicted_label"][:n][wrong[found["index"][:n]]] == names[truth[first]]).mean() > 0.85
    assert abs(found["is_label_issue"].mean() - wrong.mean()) < 0.05
    assert {"label_score", "given_label", "kind", "ambiguity"} <= found.keys()


def test_labels_that_fit_never_saw_are_refused() -> None:
    with pytest.raises(DataError, match="'z' is none"):
        suspects(np.full((2, 2), 0.5), np.array(["a", "z"]), np.array(["a", "b"]))
    with pytest.raises(DataError, match="2 examples but 1 labels"):
        suspects(np.full((2, 2), 0.5), np.array(["a"]), np.array(["a", "b"]))
