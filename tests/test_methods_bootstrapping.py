"""Bootstrapping, hard and soft, against the sums of the paper in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.bootstrapping import Bootstrapping

INDEX = [3, 11, 4, 6, 0]


def make(build: Any = tiny.linear, **cfg: Any) -> Bootstrapping:
    torch.manual_seed(0)
    return Bootstrapping(Bootstrapping.Config.model_validate(cfg), tiny.task(build))


def objective(logits: oracles.Array, y: list[int], kind: str, beta: float, own: oracles.Array | None = None) -> float:
    """-1/B sum_b sum_k [beta t_k + (1 - beta) q_k] log p_k, q the softmax or its largest entry (or `own`, fixed)."""
    total = 0.0
    for b, row in enumerate(logits):
        p = oracles.softmax(row[None])[0]
        q = p if kind == "soft" else np.eye(len(row))[int(p.argmax())]
        q = q if own is None else own[b]
        total -= sum((beta * (k == y[b]) + (1 - beta) * q[k]) * np.log(p[k]) for k in range(len(row)))
    return total / len(logits)


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 0.8, 1.0])
def test_the_loss_is_the_sum_of_the_paper(kind: str, beta: float) -> None:
    method, batch = make(kind=kind, beta=beta), tiny.batch(INDEX)
    expected = objective(tiny.array(method.predict(batch.x)), batch.y.tolist(), kind, beta)
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_the_gradient_flows_through_the_soft_target_and_not_through_the_hard_one(kind: str) -> None:
    method, batch = make(kind=kind, beta=0.6), tiny.batch(INDEX)
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias, y = method.net[1].bias, batch.y.tolist()
    free = tiny.array(method.predict(batch.x) - bias)
    flows = oracles.slope(lambda b: objective(free + b, y, kind, 0.6), tiny.array(bias))
    np.testing.assert_allclose(bias.grad.numpy(), flows, atol=1e-6)
    own = oracles.softmax(free + tiny.array(bias))
    fixed = oracles.slope(lambda b: objective(free + b, y, kind, 0.6, own), tiny.array(bias))
    assert not np.allclose(bias.grad.numpy(), fixed, atol=1e-3)  # a constant softmax would be another gradient


def test_the_weight_is_that_of_the_given_label_and_the_authors_by_default() -> None:
    assert (make().beta, make(kind="soft").beta, make(kind="soft", beta=0.5).beta) == (0.8, 0.95, 0.5)
    method, batch = make(beta=1.0), tiny.batch(INDEX)
    cross_entropy = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist()).mean()
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(cross_entropy, rel=1e-5)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_a_network_that_is_sure_has_a_finite_loss_and_gradient(kind: str) -> None:
    table = tiny.Table(300.0 * torch.nn.functional.one_hot((tiny.Y + 1) % tiny.K, tiny.K))
    method = make([table], kind=kind)
    loss = torch.as_tensor(method.loss(tiny.batch(range(tiny.N), make=tiny.numbers), tiny.at())["loss"])
    assert tiny.number(loss) == pytest.approx(method.beta * 300.0, rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert bool(table.rows.grad is not None and table.rows.grad.isfinite().all())


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_noisy_digits_are_learnt_no_worse_than_by_cross_entropy(kind: str) -> None:
    assert no_worse(accuracy("bootstrapping", method={"kind": kind}), accuracy("ce"))
