"""Mixup: the mixture itself, and how its weight and its partners are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rte.errors import ConfigError
from rte.parts.mixing import draw, mix, mixup


def batch(n: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return torch.randn(n, 3, 4, 4, generator=random), torch.rand(n, 5, generator=random).softmax(1)


def test_images_and_targets_are_mixed_alike() -> None:
    x, targets = batch()
    torch.manual_seed(0)
    mixed = mixup(x, targets, alpha=1.0)
    assert sorted(mixed.order.tolist()) == list(range(8))
    assert 0 < mixed.weight < 1
    for before, after in ((x, mixed.x), (targets, mixed.targets)):
        a = before.double().numpy()
        truth = np.stack([mixed.weight * a[b] + (1 - mixed.weight) * a[mixed.order[b]] for b in range(8)])
        np.testing.assert_allclose(after.numpy(), truth, atol=1e-6)
    torch.testing.assert_close(mixed.targets.sum(1), torch.ones(8))


@pytest.mark.parametrize(("weight", "same"), [(1.0, True), (0.0, False)])
def test_the_ends_are_exact(weight: float, same: bool) -> None:
    x, _ = batch()
    order = torch.randperm(8)
    assert torch.equal(mix(x, weight, order), x if same else x[order])


def test_the_global_seed_decides() -> None:
    torch.manual_seed(7)
    first = draw(16, 0.5)
    second = draw(16, 0.5)
    torch.manual_seed(7)
    again = draw(16, 0.5)
    assert first[0] == again[0]
    assert torch.equal(first[1], again[1])
    assert first[0] != second[0]


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0, 32.0])
@pytest.mark.parametrize("dominant", [False, True])
def test_the_weight_is_beta_distributed(alpha: float, dominant: bool) -> None:
    torch.manual_seed(0)
    weights = np.array([draw(1, alpha, dominant=dominant)[0] for _ in range(2000)])
    away = np.abs(weights - 0.5)
    assert np.mean(away**2) == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.12)  # the variance of Beta(a, a)
    if dominant:
        assert weights.min() >= 0.5
    else:
        assert weights.mean() == pytest.approx(0.5, abs=0.03)


def test_alpha_zero_does_not_mix() -> None:
    x, targets = batch()
    mixed = mixup(x, targets, alpha=0.0)
    assert mixed.weight == 1.0
    assert torch.equal(mixed.x, x)
    assert torch.equal(mixed.targets, targets)


def test_a_tiny_alpha_is_finite() -> None:
    torch.manual_seed(0)
    assert all(0 <= draw(1, 1e-3)[0] <= 1 for _ in range(200))


def test_the_inputs_stay_and_the_memory_format_too() -> None:
    x, targets = batch()
    x = x.contiguous(memory_format=torch.channels_last)
    before = x.clone(), targets.clone()
    mixed = mixup(x, targets, alpha=1.0)
    assert mixed.x.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(x, before[0])
    assert torch.equal(targets, before[1])


@pytest.mark.parametrize("alpha", [-1.0, math.nan])
def test_a_bad_alpha_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigError, match=f"is {alpha}; give 0"):
        draw(2, alpha)


def test_label_numbers_are_refused() -> None:
    x, _ = batch()
    with pytest.raises(ConfigError, match="int64; give floating-point ones"):
        mixup(x, torch.arange(8), alpha=1.0)


def test_each_example_may_have_a_weight_of_its_own() -> None:
    x, targets = batch(4)
    weight, order = torch.tensor([0.0, 0.25, 0.5, 1.0]), torch.tensor([1, 2, 3, 0])
    for values in (x, targets):
        mixed = mix(values, weight, order)
        for b in range(4):
            torch.testing.assert_close(mixed[b], mix(values, float(weight[b]), order)[b])
