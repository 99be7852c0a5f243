"""Two Gaussians against a slow EM, against scikit-learn's, and on values that are no mixture."""

from __future__ import annotations

import math
import warnings

import numpy as np
import oracles
import pytest
import torch

from rte.errors import TrainingError
from rte.parts.mixture import two_gaussians

SHAPES = [
    (120, 80, 0.3, 2.5, 0.2, 0.6),
    (100, 100, 1.0, 2.0, 0.5, 0.5),
    (20, 180, 0.1, 3.0, 0.05, 1.0),
    (180, 20, 0.1, 3, 0.05, 1),
]


def losses(low: int, high: int, m0: float, m1: float, s0: float, s1: float) -> np.ndarray:
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(m0, s0, low), random.normal(m1, s1, high)])


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_slow_reference(shape: tuple[int, int, float, float, float, float]) -> None:
    values = losses(*shape)
    found = two_gaussians(torch.from_numpy(values))
    np.testing.assert_allclose(found.numpy(), oracles.two_gaussians(values), atol=1e-9)


@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_the_number_of_rounds_is_bounded(rounds: int) -> None:
    values = losses(*SHAPES[1])
    found = two_gaussians(torch.from_numpy(values), iterations=rounds, tolerance=0.0)
    np.testing.assert_allclose(found.numpy(), oracles.two_gaussians(values, rounds, 0.0), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_agrees_with_scikit_learn(shape: tuple[int, int, float, float, float, float]) -> None:
    from sklearn.mixture import GaussianMixture

    values = losses(*shape)
    scaled = ((values - values.min()) / (values.max() - values.min()))[:, None]
    peer = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds need not converge
        peer.fit(scaled)
    truth = peer.predict_proba(scaled)[:, peer.means_.argmin()]
    np.testing.assert_allclose(two_gaussians(torch.from_numpy(values)).numpy(), truth, atol=0.05)  # other 2-means


def test_clear_groups_are_told_apart_whatever_the_scale() -> None:
    values = torch.tensor(losses(30, 10, 0.5, 9.0, 0.1, 0.1))
    for scaled in (values, values * 1e-6, values * 1e6 - 5):
        found = two_gaussians(scaled)
        assert found[:30].min() > 0.99
        assert found[30:].max() < 0.01


def test_the_order_does_not_matter_and_nothing_is_random() -> None:
    values = torch.tensor(losses(*SHAPES[0]))
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    first = two_gaussians(values)
    torch.manual_seed(2)
    assert torch.equal(two_gaussians(values), first)
    torch.testing.assert_close(two_gaussians(values[order]), first[order])


@pytest.mark.parametrize(
    "values", [[0.7] * 5, [0.0, 0.0], [3.0], [], [1.0, 1.0 + 1e-8]], ids=["equal", "zero", "one", "none", "rounding"]
)
def test_values_that_do_not_differ_are_all_trusted(values: list[float]) -> None:
    found = two_gaussians(torch.tensor(values, dtype=torch.float64))
    assert found.tolist() == [1.0] * len(values)


def test_two_values_and_one_outlier_are_enough() -> None:
    assert two_gaussians(torch.tensor([0.0, 5.0])).tolist() == pytest.approx([1.0, 0.0], abs=1e-6)
    found = two_gaussians(torch.tensor([0.1] * 99 + [50.0]))
    assert found[:99].min() > 0.99
    assert found[99] < 0.01


def test_it_keeps_the_dtype_and_takes_no_gradient() -> None:
    values = torch.tensor(losses(*SHAPES[0]), dtype=torch.float32, requires_grad=True)
    found = two_gaussians(values)
    assert found.dtype == torch.float32
    assert not found.requires_grad
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(TrainingError, match="not finite"):
        two_gaussians(torch.tensor([0.0, bad]))
