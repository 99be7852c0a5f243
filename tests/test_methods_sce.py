"""Symmetric cross-entropy: both terms, their limits, and what it learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.sce import SymmetricCrossEntropy


def make(build: Any = tiny.linear, **cfg: Any) -> SymmetricCrossEntropy:
    torch.manual_seed(0)
    return SymmetricCrossEntropy(SymmetricCrossEntropy.Config.model_validate(cfg), tiny.task(build))


def by_definition(logits: oracles.Array, y: list[int], alpha: float, beta: float, zero: float = 1e-4) -> float:
    """Both cross-entropies summed class by class, with one-hot labels whose zeros are lifted."""
    total = 0.0
    for p, label in zip(oracles.softmax(logits), y, strict=True):
        for k, share in enumerate(p):
            target = 1.0 if k == label else zero
            total += -alpha * (k == label) * math.log(share) - beta * share * math.log(target)
    return total / len(y)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 1.0), (6.0, 0.1), (1.0, 0.0), (0.0, 1.0)])
def test_the_loss_is_both_cross_entropies(alpha: float, beta: float) -> None:
    method, batch = make(alpha=alpha, beta=beta), tiny.batch([3, 7, 1, 10, 6])
    logits = tiny.array(method.predict(batch.x))
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx(by_definition(logits, batch.y.tolist(), alpha, beta), rel=1e-5)
    assert tiny.number(terms["ce"]) == pytest.approx(by_definition(logits, batch.y.tolist(), 1, 0), rel=1e-5)
    assert tiny.number(terms["rce"]) == pytest.approx(by_definition(logits, batch.y.tolist(), 0, 1), rel=1e-5)


def test_the_gradient_is_that_of_the_definition() -> None:
    method, batch = make(alpha=0.3, beta=2.0), tiny.batch([4, 6, 10])
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.net[1].bias
    free = tiny.array(method.predict(batch.x) - bias)
    slope = oracles.slope(lambda b: by_definition(free + b, batch.y.tolist(), 0.3, 2.0), tiny.array(bias))
    np.testing.assert_allclose(bias.grad.numpy(), slope, atol=1e-5)


def test_the_reverse_term_is_bounded_and_its_gradient_forgets_what_is_impossible() -> None:
    sure = 60.0 * torch.eye(tiny.K)[(tiny.Y + 1) % tiny.K]
    method = make([tiny.Table(sure)], alpha=0.0)
    terms = method.loss(tiny.batch(range(tiny.N), make=tiny.numbers), tiny.at())
    assert tiny.number(terms["rce"]) == pytest.approx(-math.log(1e-4), rel=1e-6)
    torch.as_tensor(terms["loss"]).backward()  # type: ignore[no-untyped-call]
    assert method.net.rows.grad.abs().max() < 1e-6


def test_it_learns_more_from_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("sce")) > np.mean(accuracy("ce")) + 0.03
