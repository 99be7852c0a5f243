"""What became of the wrong labels, by hand and in the cases where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rte.errors import DataError
from rte.evaluate.memorisation import loss_split, memorisation, memorised, recovered

TRUE = np.array([0, 0, 1, 1, 2, 2])
GIVEN = np.array([0, 1, 2, 2, 0, 2])
PREDICTED = np.array([1, 1, 1, 0, 2, 2])  # wrong labels at 1, 2, 3, 4: memorised, recovered, neither, recovered


def test_shares_of_the_wrong_labels_only() -> None:
    assert memorised(PREDICTED, GIVEN, TRUE) == 0.25
    assert recovered(PREDICTED, GIVEN, TRUE) == 0.5
    assert memorisation(PREDICTED, GIVEN, TRUE) == {"wrong": 4, "memorised": 0.25, "recovered": 0.5}


def test_right_labels_play_no_part() -> None:
    other = PREDICTED.copy()
    other[[0, 5]] = 0
    assert memorised(other, GIVEN, TRUE) == 0.25
    assert recovered(other, GIVEN, TRUE) == 0.5


@pytest.mark.parametrize(("predicted", "share"), [(GIVEN, (1.0, 0.0)), (TRUE, (0.0, 1.0))])
def test_extremes(predicted: np.ndarray, share: tuple[float, float]) -> None:
    assert (memorised(predicted, GIVEN, TRUE), recovered(predicted, GIVEN, TRUE)) == share


def test_without_wrong_labels_there_is_no_share() -> None:
    assert memorisation(PREDICTED, TRUE, TRUE) == {"wrong": 0, "memorised": None, "recovered": None}


def test_losses_are_split_in_order() -> None:
    right, wrong = loss_split(np.arange(6, dtype=np.float32), GIVEN, TRUE)
    assert_array_equal(right, [0, 5])
    assert_array_equal(wrong, [1, 2, 3, 4])
    assert right.dtype == wrong.dtype == np.float64
    assert len(loss_split(np.arange(6), TRUE, TRUE).wrong) == 0


def test_lengths_must_agree() -> None:
    for measure in (memorised, recovered, memorisation):
        with pytest.raises(
            DataError, match=r"predictions, given labels and true labels have shapes \(5,\), \(6,\), \(6,\)"
        ):
            measure(PREDICTED[1:], GIVEN, TRUE)
    with pytest.raises(DataError, match=r"losses, given labels and true labels have shapes \(6, 1\)"):
        loss_split(np.zeros((6, 1)), GIVEN, TRUE)
