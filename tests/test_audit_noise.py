"""How many labels are wrong: the likelihood's answer on data made to its assumptions, and what bounds it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rte.audit.evidence import Evidence, gather
from rte.audit.likelihood import fit
from rte.audit.noise import estimate, spread

K = 6


def made(rate: float, n: int = 4000, seed: int = 0, sharpness: float = 1.0) -> tuple[Evidence, np.ndarray]:
    """True labels drawn from the predictions, made wrong at random; predictions then made too flat or too sharp."""
    rng = np.random.default_rng(seed)
    logits = 4.0 * rng.normal(size=(n, K))
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    true = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    wrong = rng.random(n) < rate
    y = np.where(wrong, (true + rng.integers(1, K, n)) % K, true)
    return gather(y, [torch.from_numpy(logits / sharpness).float()], K), y != true


@pytest.mark.parametrize("sharpness", [1.0, 1.5])
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5])
def test_the_likelihood_finds_rate_and_matrix_where_noise_does_not_depend_on_the_image(
    rate: float, sharpness: float
) -> None:
    e, wrong = made(rate, sharpness=sharpness)
    found = fit(e)
    assert abs((1 - found.right).mean() - wrong.mean()) < 0.03
    expected = np.full((K, K), rate / (K - 1)) + np.eye(K) * (1 - rate - rate / (K - 1))
    assert np.abs(found.matrix - expected).max() < 0.08
    assert found.sharpness == pytest.approx(sharpness, abs=0.3)


def test_one_round_of_the_likelihood_is_the_formula() -> None:
    e, _ = made(0.3, n=40)
    found = fit(e)
    rest = found.matrix
    for i in range(5):
        p = np.zeros(K)
        p[e.top[i]] = e.top_p[i].astype(np.float64) ** found.sharpness
        joint = p / p.sum() * rest[:, e.y[i]]
        assert found.right[i] == pytest.approx(joint[e.y[i]] / joint.sum(), abs=1e-3)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_the_rate_lies_in_its_interval_and_between_the_two_answers(rate: float) -> None:
    e, wrong = made(rate)
    found = estimate(e)
    assert found.low <= wrong.mean() <= found.high
    assert found.fewest - 1e-9 <= found.rate <= found.most + 1e-9
    np.testing.assert_allclose(found.matrix.sum(1), 1.0, atol=1e-6)
    assert (found.matrix_low <= found.matrix).all()
    assert (found.matrix <= found.matrix_high).all()
    assert (found.class_low <= found.class_rate).all()
    assert found.counts.sum() == len(e)


def test_joint_counts_keep_every_label() -> None:
    e, _ = made(0.3, n=200)
    wrong = np.random.default_rng(0).random(len(e))
    joint = spread(e, wrong)
    np.testing.assert_allclose(joint.sum(0), np.bincount(e.y, minlength=K), rtol=1e-6)
    np.testing.assert_allclose(np.trace(joint), (1 - wrong).sum(), rtol=1e-6)


def test_more_classes_than_are_kept_of_a_prediction() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 40, 3000)
    logits = 8.0 * np.eye(40)[true] + rng.normal(size=(3000, 40))
    wrong = rng.random(3000) < 0.3
    y = np.where(wrong, (true + rng.integers(1, 40, 3000)) % 40, true)
    found = estimate(gather(y, [torch.from_numpy(logits).float()], 40))
    assert abs(found.rate - wrong.mean()) < 0.03
