"""The two consistency terms against their float64 references, at their limits, and by their gradients."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_parts_losses import DTYPES, SATURATED, B, K, draw, gradient, tensor
from torch import Tensor

from rte.errors import ConfigError
from rte.parts import losses

# Jensen-Shannon divergence


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_jensen_shannon_is_the_formula(dtype: torch.dtype, tolerance: float, n: int) -> None:
    probs = [oracles.softmax(z) for z in draw(n=n)]
    found = losses.jensen_shannon([tensor(p, dtype) for p in probs])
    assert found.shape == (B,)
    np.testing.assert_allclose(found.numpy(), oracles.jensen_shannon(probs), rtol=5 * tolerance, atol=tolerance)
    assert torch.equal(losses.jensen_shannon(torch.stack([tensor(p, dtype) for p in probs])), found)


def test_jensen_shannon_of_equal_distributions_is_zero_and_flat() -> None:
    logits = tensor(draw()[0], grad=True)
    p = logits.softmax(1)
    found = losses.jensen_shannon([p, p.detach(), p.detach()])
    assert found.abs().max() < 1e-15
    assert gradient(found, logits).abs().max() < 1e-15


@pytest.mark.parametrize("n", [2, 3, 5])
def test_jensen_shannon_of_distinct_one_hots_is_log_n(n: int) -> None:
    rows = torch.eye(K)[:n]
    assert losses.jensen_shannon([row[None] for row in rows]).item() == pytest.approx(math.log(n), rel=1e-6)


def test_jensen_shannon_resolves_small_differences_in_float32() -> None:
    p = oracles.softmax(draw(scale=1.0)[0]).astype(np.float32)
    other = p.copy()
    other[:, 0] += np.float32(1e-3)
    other[:, 1] -= np.float32(1e-3)
    truth = oracles.jensen_shannon([p.astype(np.float64), other.astype(np.float64)])
    found = losses.jensen_shannon([torch.tensor(p), torch.tensor(other)]).numpy()
    np.testing.assert_allclose(found, truth, rtol=0.2, atol=3e-8)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(0.1, 100))
def test_jensen_shannon_is_symmetric_and_between_zero_and_log_n(seed: int, n: int, scale: float) -> None:
    probs = [tensor(oracles.softmax(z)) for z in draw(seed, scale, n)]
    found = losses.jensen_shannon(probs)
    assert found.min() >= -1e-12
    assert found.max() <= math.log(n) + 1e-12
    torch.testing.assert_close(losses.jensen_shannon(probs[::-1]), found)


def test_jensen_shannon_gradient() -> None:
    first, *others = draw(scale=1.5, n=3)
    rest = [oracles.softmax(z) for z in others]
    logits = tensor(first, grad=True)

    def value(v: Tensor) -> Tensor:
        return losses.jensen_shannon([v.softmax(1), *map(tensor, rest)])

    assert torch.autograd.gradcheck(value, (logits,))
    assert torch.autograd.gradgradcheck(value, (logits,))
    truth = oracles.slope(lambda v: oracles.jensen_shannon([oracles.softmax(v), *rest]).sum(), first)
    np.testing.assert_allclose(gradient(value(logits), logits).numpy(), truth, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("weight", [1.0, 100.0])
def test_jensen_shannon_survives_probabilities_of_exactly_zero(dtype: torch.dtype, weight: float) -> None:
    logits = tensor(SATURATED, dtype, grad=True)
    p = logits.softmax(1)
    assert (p == 0).any()
    found = losses.jensen_shannon([p, p.roll(1, 1), torch.full_like(p, 1 / K).detach()])
    truth = [oracles.softmax(SATURATED), np.roll(oracles.softmax(SATURATED), 1, 1), np.full((4, K), 1 / K)]
    np.testing.assert_allclose(found.detach().double().numpy(), oracles.jensen_shannon(truth), atol=2e-3)
    assert gradient(weight * found, logits).isfinite().all()


def test_jensen_shannon_needs_two_distributions() -> None:
    with pytest.raises(ConfigError, match="got 1; give at least two"):
        losses.jensen_shannon([torch.full((1, 2), 0.5)])
    with pytest.raises(ConfigError, match="got 0"):
        losses.jensen_shannon([])


# ensemble consistency


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("n", [1, 2, 10])
def test_ensemble_consistency_is_the_formula(dtype: torch.dtype, tolerance: float, n: int) -> None:
    teacher, *views = [oracles.softmax(z) for z in draw(n=n + 1)]
    found = losses.ensemble_consistency(tensor(teacher, dtype), [tensor(v, dtype) for v in views])
    assert found.shape == (B,)
    np.testing.assert_allclose(found.numpy(), oracles.ensemble_consistency(teacher, views), rtol=5 * tolerance)
    stacked = torch.stack([tensor(v, dtype) for v in views])
    assert torch.equal(losses.ensemble_consistency(tensor(teacher, dtype), stacked), found)


def test_ensemble_consistency_at_its_limits() -> None:
    one_hot = torch.eye(K)
    assert losses.ensemble_consistency(one_hot, [one_hot, one_hot]).abs().max() == 0
    torch.testing.assert_close(
        losses.ensemble_consistency(one_hot, [one_hot.roll(1, 0), one_hot]), torch.full((K,), 2 / K / 2)
    )


def test_ensemble_consistency_gradient() -> None:
    first, *others = draw(scale=1.5, n=3)
    teacher, second = (oracles.softmax(z) for z in others)
    logits = tensor(first, grad=True)

    def value(v: Tensor) -> Tensor:
        return losses.ensemble_consistency(tensor(teacher), [v.softmax(1), tensor(second)])

    assert torch.autograd.gradcheck(value, (logits,))
    truth = oracles.slope(lambda v: oracles.ensemble_consistency(teacher, [oracles.softmax(v), second]).sum(), first)
    np.testing.assert_allclose(gradient(value(logits), logits).numpy(), truth, rtol=1e-6, atol=1e-9)


def test_ensemble_consistency_needs_a_view() -> None:
    with pytest.raises(ConfigError, match="no views; give at least one"):
        losses.ensemble_consistency(torch.full((1, 2), 0.5), [])


# half precision


def test_terms_of_confident_pairs_are_the_same_under_autocast() -> None:
    """On processors autocast leaves softmax in bfloat16: ECR of such pairs was 2.1e-6 instead of 6.1e-6."""
    torch.manual_seed(0)
    y = torch.randint(0, 10, (256,))
    one, two = (6 * torch.nn.functional.one_hot(y, 10) + torch.randn(256, 10) for _ in range(2))
    found = {}
    for half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            p, q = losses.probabilities(one.bfloat16()), losses.probabilities(two.bfloat16())
            found[half] = losses.jensen_shannon([p, q]).sum(), losses.ensemble_consistency(p, [q]).sum()
    exact = [oracles.softmax(z.bfloat16().double().numpy()) for z in (one, two)]
    expected = oracles.jensen_shannon(exact).sum(), np.square(exact[0] - exact[1]).mean(1).sum()
    for half in (False, True):
        np.testing.assert_allclose([float(v) for v in found[half]], expected, rtol=1e-4)


def test_confidences_differ_where_a_network_is_sure() -> None:
    """The most confident tenth had one value of 351 in all, so that which labels were looked at was left to chance."""
    torch.manual_seed(0)
    logits = 10 * torch.nn.functional.one_hot(torch.randint(0, 10, (3510,)), 10) + torch.randn(3510, 10)
    with torch.autocast("cpu", torch.bfloat16):
        sure = losses.probabilities(logits.bfloat16()).max(1).values.topk(351).values
        rounded = logits.bfloat16().softmax(1).max(1).values.topk(351).values
    assert len(rounded.unique()) == 1
    assert len(sure.unique()) > 100


def test_a_divergence_with_weights_is_the_weighted_sum_of_those_from_the_weighted_mean() -> None:
    p = torch.rand(3, 5, 4, dtype=torch.float64)
    p = p / p.sum(2, keepdim=True)
    weights = [0.6, 0.3, 0.1]
    middle = sum(w * d for w, d in zip(weights, p.numpy(), strict=True))
    expected = [
        sum(w * oracles.kl(d[b].tolist(), middle[b].tolist()) for w, d in zip(weights, p.numpy(), strict=True))
        for b in range(5)
    ]
    np.testing.assert_allclose(losses.jensen_shannon(p, weights).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(
        losses.jensen_shannon(p, [1 / 3] * 3).numpy(), losses.jensen_shannon(p).numpy(), rtol=1e-12
    )
    for wrong in ([0.5, 0.5], [0.5, 0.6, 0.1], [1.5, -0.6, 0.1]):
        with pytest.raises(ConfigError, match="one for each distribution, of sum 1"):
            losses.jensen_shannon(p, wrong)
