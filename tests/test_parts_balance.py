"""Targets that name each class as often as the labels do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import quick
from test_train_trainer import same, stopped_and_resumed, trainer

from rte.parts.balance import MEMORY, Balance


def lopsided(n: int, favour: float, seed: int = 0) -> torch.Tensor:
    """Predictions (n, 4) that favour class 0."""
    logits = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    logits[:, 0] += favour
    return logits.softmax(1)


def test_against_a_reference_in_float64() -> None:
    wanted = np.array([4.0, 3.0, 2.0, 1.0]) / 10
    balance, mean = Balance(torch.tensor([4, 3, 2, 1])), wanted.copy()
    for seed in range(5):
        p = lopsided(6, 1.0, seed)
        got = balance(p)
        mean = MEMORY * mean + (1 - MEMORY) * p.double().numpy().mean(0)
        expected = p.double().numpy() * wanted / mean
        expected /= expected.sum(1, keepdims=True)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


def test_classes_become_as_frequent_as_wanted() -> None:
    balance, even = Balance(torch.ones(4)), torch.full((4,), 0.25)
    p = lopsided(4000, 1.5)
    for _ in range(2000):
        q = balance(p)
    assert p.mean(0)[0] > 0.5
    before, after = ((x.mean(0) - even).abs().max() for x in (p, q))
    assert after < before / 3


def test_what_is_as_wanted_stays_as_it_is() -> None:
    p = torch.eye(4).repeat(2, 1) * 0.6 + 0.1
    balance = Balance(torch.ones(4))
    torch.testing.assert_close(balance(p), p / p.sum(1, keepdim=True))


def test_labels_say_what_is_wanted() -> None:
    assert Balance.of_labels(torch.tensor([0, 0, 0, 2]), 4).wanted.tolist() == [0.75, 0.0, 0.25, 0.0]


@pytest.mark.parametrize("p", [torch.zeros(3, 4), torch.eye(4)[:3], torch.full((3, 4), 0.25)])
def test_finite_for_classes_that_are_never_wanted_or_predicted(p: torch.Tensor) -> None:
    balance = Balance(torch.tensor([5, 0, 1, 0]))
    for _ in range(3000):
        out = balance(p)
    assert torch.isfinite(out).all()
    assert (out >= 0).all()


def test_keeps_no_gradient() -> None:
    p = lopsided(3, 1.0).requires_grad_()
    assert not Balance(torch.ones(4))(p).requires_grad


def test_a_run_resumes_with_the_same_balance() -> None:
    config = quick("rte", method={"balance": True})
    straight = trainer(config)
    straight.fit()
    assert same(straight.method, stopped_and_resumed(config, 3).method)
    balance = straight.method.balance
    assert isinstance(balance, Balance)
    assert not torch.equal(balance.mean, balance.wanted), "it has been at work"
