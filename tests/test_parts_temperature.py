"""The temperature of predictions, found by labels of which some are wrong."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import torch

from rte.parts.temperature import PRIOR, fit_temperature
from rte.parts.transition import log_matrix, symmetric_matrix

K, N = 5, 4000


def labelled(right: float, wrong: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and labels of which a share is wrong; the classes are as the logits say at the temperature `right`."""
    rng = np.random.default_rng(1)
    logits = rng.normal(scale=3.0, size=(N, K))
    p = oracles.softmax(logits / right)
    y = np.array([rng.choice(K, p=row) for row in p])
    y = np.where(rng.random(N) < wrong, (y + rng.integers(1, K, N)) % K, y)
    return torch.tensor(logits), torch.tensor(y)


@pytest.mark.parametrize("right", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("wrong", [0.0, 0.4])
def test_the_right_temperature_is_found_whether_or_not_labels_are_wrong(right: float, wrong: float) -> None:
    logits, y = labelled(right, wrong)
    log_T = log_matrix(symmetric_matrix(wrong, K)).double()
    assert fit_temperature(logits, y, log_T) == pytest.approx(right, rel=0.2)


def test_who_takes_wrong_labels_for_right_ones_finds_predictions_too_sure() -> None:
    logits, y = labelled(1.0, 0.4)
    assert fit_temperature(logits, y, log_matrix(torch.eye(K, dtype=torch.float64))) > 2.0


def test_it_is_the_minimum_of_the_written_cost() -> None:
    logits, y = labelled(0.7, 0.3)
    logits, y = logits[:40], y[:40]
    T = oracles.symmetric_matrix(K, 0.3)

    def cost(t: float) -> float:
        p = oracles.softmax(logits.numpy() / t)
        told = -sum(math.log(sum(p[i, a] * T[a][int(y[i])] for a in range(K))) for i in range(len(y)))
        return told + PRIOR * math.log(t) ** 2

    grid = np.geomspace(0.2, 8.0, 500)
    best = grid[np.argmin([cost(t) for t in grid])]
    found = fit_temperature(logits, y, log_matrix(torch.tensor(T, dtype=torch.float64)))
    assert found == pytest.approx(best, rel=0.02)


def test_labels_that_say_nothing_leave_predictions_as_they_are() -> None:
    logits, y = labelled(1.0, 0.8)  # of five classes: drawn blindly
    assert fit_temperature(logits, y, log_matrix(symmetric_matrix(0.8, K)).double()) == pytest.approx(1.0, abs=1e-3)
