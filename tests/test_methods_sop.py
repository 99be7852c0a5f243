"""SOP: the objective, how u and v descend, and that wrong labels are explained away."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.sop import BATCH, EPOCHS, START, SparseOverParameterization
from rte.views.batch import ViewPlan

INDEX = [3, 7, 1, 10, 6]


def make(build: Any = tiny.linear, **cfg: Any) -> SparseOverParameterization:
    torch.manual_seed(0)
    method = SparseOverParameterization(SparseOverParameterization.Config.model_validate(cfg), tiny.task(build))
    method.u.copy_(torch.rand(tiny.N))
    method.v.copy_(0.5 * torch.randn(tiny.N, tiny.K))
    return method


def explained(p: oracles.Array, u: float, v: oracles.Array, label: int) -> oracles.Array:
    q = p.copy()
    for k in range(tiny.K):
        q[k] += min(u * u, 1.0) if k == label else -min(v[k] * v[k], 1.0)
    q = np.maximum(q, 1e-4)
    return q / q.sum()


def squared_error(p: oracles.Array, u: float, v: oracles.Array, label: int) -> float:
    total = 0.0
    for k in range(tiny.K):
        noise = min(u * u, 1.0) if k == label else -min(v[k] * v[k], 1.0)
        total += (float(k == p.argmax()) + noise - float(k == label)) ** 2
    return total


@pytest.mark.parametrize("consistency", [0.0, 0.9])
@pytest.mark.parametrize("balance", [0.0, 0.1])
def test_loss_is_the_formula(consistency: float, balance: float) -> None:
    method = make(consistency=consistency, balance=balance)
    plan = method.views(tiny.at())
    assert plan == ViewPlan(weak=1, strong=int(consistency > 0))
    batch, u, v = tiny.batch(INDEX, plan), tiny.array(method.u), tiny.array(method.v)
    p = oracles.softmax(tiny.array(method.predict(batch.x)))
    q = np.array([explained(p[b], u[i], v[i], int(tiny.Y[i])) for b, i in enumerate(INDEX)])
    expected = -np.log(q[range(len(INDEX)), batch.y]).mean() + balance * oracles.class_balance(q)
    if consistency:
        strong = oracles.softmax(tiny.array(method.predict(batch.strong(0))))
        expected += consistency * np.mean([oracles.kl(a.tolist(), b.tolist()) for a, b in zip(p, strong, strict=True)])
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


def test_u_and_v_descend_on_losses_of_their_own() -> None:
    method, batch = make(rate_u=0.5, rate_v=2.0), tiny.batch(INDEX)
    u, v = tiny.array(method.u), tiny.array(method.v)
    p = oracles.softmax(tiny.array(method.predict(batch.x)))
    share = EPOCHS / BATCH / 10
    method.loss(batch, tiny.at())
    for b, i in enumerate(INDEX):
        label = int(tiny.Y[i])

        def likelihood(at: oracles.Array, b: int = b, i: int = i, label: int = label) -> float:
            return float(-np.log(explained(p[b], at[0], v[i], label)[label]))

        def error(at: oracles.Array, b: int = b, i: int = i, label: int = label) -> float:
            return squared_error(p[b], u[i], at, label)

        slope_u, slope_v = oracles.slope(likelihood, u[i : i + 1]), oracles.slope(error, v[i])
        assert float(method.u[i]) == pytest.approx(np.clip(u[i] - 0.5 * share * slope_u[0], -1, 1), abs=1e-4)
        np.testing.assert_allclose(method.v[i].numpy(), np.clip(v[i] - 2.0 * share * slope_v, -1, 1), atol=1e-4)
    untouched = [i for i in range(tiny.N) if i not in INDEX]
    np.testing.assert_array_equal(method.u[untouched].numpy(), u[untouched].astype(np.float32))


def test_a_step_of_u_and_v_does_not_depend_on_the_size_of_the_batch() -> None:
    whole, parts = make(), make()
    whole.loss(tiny.batch(INDEX), tiny.at())
    for i in INDEX:
        parts.loss(tiny.batch([i]), tiny.at())
    torch.testing.assert_close(whole.u, parts.u)
    torch.testing.assert_close(whole.v, parts.v)


def test_the_network_takes_the_noise_as_constant_and_the_noise_leaves_the_network_alone() -> None:
    method, batch = make(), tiny.batch(INDEX)
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    assert not method.u.requires_grad
    assert not method.v.requires_grad
    method, bias = make(), method.net[1].bias
    u, v = tiny.array(method.u), tiny.array(method.v)
    free = tiny.array(method.predict(batch.x) - bias.detach())

    def objective(b: oracles.Array) -> float:
        p = oracles.softmax(free + b)
        q = [explained(p[j], u[i], v[i], int(tiny.Y[i]))[int(tiny.Y[i])] for j, i in enumerate(INDEX)]
        return float(-np.log(q).mean())

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-4)


def test_a_label_that_a_certain_network_contradicts_is_explained_away_and_another_is_not() -> None:
    y = tiny.Y.clone()
    y[0] = 1  # the network says 0
    method = make([tiny.Table(6.0 * torch.eye(tiny.K)[tiny.Y])])
    method.y = y  # in place it would change the labels of all other tests
    method.u.fill_(START)
    method.v.fill_(START)
    for epoch in range(30):
        method.loss(tiny.batch(range(tiny.N), make=tiny.numbers, y=y), tiny.at(epoch, 30))
    assert float(method.v[0, 0].abs()) == pytest.approx(1.0, abs=0.01)
    assert float(method.u[0].abs()) > 0.5
    assert method.v[1:].abs().max() < 0.01
    trust = method.trust(tiny.sweep(method, tiny.numbers))
    assert trust[0] < 0.1
    assert trust[1:].min() > 0.99


def test_it_learns_more_from_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("sop")) > np.mean(accuracy("ce")) + 0.03
