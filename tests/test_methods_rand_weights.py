"""Random weights: a weighted sum of cross-entropies, whose weights are drawn anew in each step."""

from __future__ import annotations

import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.rand_weights import RandomWeights

INDEX = [3, 11, 4, 6, 0, 8]


def make() -> RandomWeights:
    torch.manual_seed(0)
    return RandomWeights(RandomWeights.Config(), tiny.task())


def test_the_loss_is_the_weighted_sum_of_the_paper() -> None:
    method, batch = make(), tiny.batch(INDEX)
    torch.manual_seed(4)
    drawn = torch.randn(len(INDEX)).double().numpy()
    positive = [max(u, 0.0) for u in drawn]
    nll = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist())
    expected = sum(w * v for w, v in zip(positive, nll, strict=True)) / sum(positive)
    torch.manual_seed(4)
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert tiny.number(terms["task"]) == pytest.approx(nll.mean(), rel=1e-5)


def test_weights_are_drawn_anew_and_leave_half_of_the_examples_out() -> None:
    table = tiny.Table(torch.zeros(tiny.N, tiny.K))
    method = RandomWeights(RandomWeights.Config(), tiny.task([table]))
    torch.manual_seed(0)
    seen = []
    for step in range(200):
        table.rows.grad = None
        terms = method.loss(tiny.batch(range(tiny.N), make=tiny.numbers), tiny.at(step))
        torch.as_tensor(terms["loss"]).backward()  # type: ignore[no-untyped-call]
        assert table.rows.grad is not None
        seen.append(table.rows.grad.abs().sum(1) > 0)
    learnt = torch.stack(seen).float()
    assert float(learnt.mean()) == pytest.approx(0.5, abs=0.03)
    assert len(learnt.unique(dim=0)) > 150


def test_a_batch_of_one_may_have_no_weight_and_stays_finite() -> None:
    method = make()
    for seed in range(8):
        torch.manual_seed(seed)
        weight = 1.0 if float(torch.randn(1)) > 0 else 0.0
        torch.manual_seed(seed)
        terms = method.loss(tiny.batch([3]), tiny.at())
        assert tiny.number(terms["loss"]) == pytest.approx(weight * tiny.number(terms["task"]), rel=1e-6)


def test_noisy_digits_are_learnt_no_worse_than_by_cross_entropy() -> None:
    assert no_worse(accuracy("rand_weights"), accuracy("ce"))
