"""MLNT: the objective, and a gradient that goes through the virtual steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy
from torch import nn

from rte.errors import ConfigError
from rte.methods.mlnt import NoiseTolerant
from rte.parts.neighbours import borrow, nearest


def make(build: Any = tiny.linear, **cfg: Any) -> NoiseTolerant:
    torch.manual_seed(0)
    method = NoiseTolerant(NoiseTolerant.Config.model_validate(cfg), tiny.task(build))
    for p in method.teacher.parameters():
        p.data += torch.linspace(-0.5, 0.5, p.numel()).view_as(p)
    method.meta.fill_(True)
    return method


def objective(
    x: oracles.Array, w: oracles.Array, b: oracles.Array, y: list[int], sets: list[list[int]], target: oracles.Array
) -> float:
    """CE + 2 / M * sum KL / K after steps of size 0.3, for a linear network, whose gradient is known in closed form."""
    p = oracles.softmax(x @ w.T + b)
    total = -float(np.mean([np.log(p[k, c]) for k, c in enumerate(y)]))
    for labels in sets:
        slope = (p - np.eye(tiny.K)[labels]) / len(y)
        after = oracles.softmax(x @ (w - 0.3 * slope.T @ x).T + b - 0.3 * slope.sum(0))
        total += 2.0 / len(sets) * float((target * (np.log(target) - np.log(after))).sum()) / len(y) / tiny.K
    return total


def test_loss_and_its_gradient_are_those_of_the_formula() -> None:
    method, batch = make(sets=3, neighbours=2, step_size=0.3, weight=2.0, ramp=0.0), tiny.batch([4, 6, 10, 1, 2])
    head, teacher = method.student[1], method.teacher.module[1]
    x, y = tiny.array(batch.x.flatten(1)), batch.y.tolist()
    logits = x @ tiny.array(teacher.weight).T + tiny.array(teacher.bias)
    near = nearest(torch.from_numpy(logits), 2)  # this network has no features: the teacher's logits serve
    torch.manual_seed(5)
    sets = [borrow(batch.y, near, 0.5).tolist() for _ in range(3)]
    assert any(labels != y for labels in sets)
    torch.manual_seed(5)
    loss = torch.as_tensor(method.loss(batch, tiny.at(5))["loss"])
    w, b, target = tiny.array(head.weight), tiny.array(head.bias), oracles.softmax(logits)
    assert float(loss.detach()) == pytest.approx(objective(x, w, b, y, sets, target), rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    whole = oracles.slope(lambda v: objective(x, w, v, y, sets, target), b)
    np.testing.assert_allclose(head.bias.grad.numpy(), whole, atol=1e-5)
    slopes = oracles.slope(lambda v: objective(x, v.reshape(w.shape), b, y, sets, target), w.flatten())
    np.testing.assert_allclose(head.weight.grad.flatten().numpy(), slopes, atol=1e-5)
    assert all(p.grad is None for p in method.teacher.parameters())


def test_the_second_order_matters() -> None:
    """With the step taken as a constant the gradient would be another one."""
    method, batch = make(sets=1, step_size=0.5, weight=4.0, ramp=0.0), tiny.batch(range(8))
    grads, honest = [], torch.autograd.grad
    for detached in (False, True):
        method.zero_grad()
        torch.manual_seed(1)
        if detached:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(torch.autograd, "grad", lambda *a, **k: [g.detach() for g in honest(*a, **k)])
                loss = torch.as_tensor(method.loss(batch, tiny.at(5))["loss"])
        else:
            loss = torch.as_tensor(method.loss(batch, tiny.at(5))["loss"])
        loss.backward()  # type: ignore[no-untyped-call]
        grads.append(method.student[1].bias.grad.clone())
    assert float((grads[0] - grads[1]).abs().max()) > 1e-4


def test_before_its_time_it_is_cross_entropy_and_then_the_weight_rises() -> None:
    method = make(warmup=0.2, ramp=0.5, sets=1)
    batch = tiny.batch([1, 2, 3])
    nll = -oracles.log_likelihood(tiny.array(method.student(batch.x)), batch.y.tolist()).mean()
    for epoch in range(6):
        method.epoch_start(tiny.at(epoch), tiny.sweep(method))
        terms = method.loss(batch, tiny.at(epoch))
        if epoch < 2:
            assert tiny.number(terms["loss"]) == pytest.approx(nll, rel=1e-5)
            assert method.cost(tiny.at(epoch)) == 3.0
        else:
            u = min(epoch / 10 / 0.5, 1.0)
            assert terms["weight"] == pytest.approx(0.4 * math.exp(-5 * (1 - u) ** 2))
            assert method.cost(tiny.at(epoch)) == 12.0


def test_virtual_steps_leave_batch_norm_statistics_and_weights_alone() -> None:
    method, plain = make(tiny.normed, sets=3, ramp=0.0), make(tiny.normed, sets=3, weight=0.0)
    for one in (method, plain):
        one.train()
        one.loss(tiny.batch(range(6)), tiny.at(5))
    assert not tiny.changed(method.student, tiny.copy_state(plain.student))


def test_the_agreement_is_zero_where_steps_change_nothing() -> None:
    method = make(sets=2, step_size=1e-9, ramp=0.0)
    method.teacher.restart(method.student)
    agreement = tiny.number(method.loss(tiny.batch([0, 1, 2]), tiny.at(5))["agreement"])
    assert agreement == pytest.approx(0.0, abs=1e-6)


def test_a_compiled_network_is_refused() -> None:
    def build() -> nn.Module:
        net = tiny.linear()
        net._compiled_call_impl = lambda x: x  # type: ignore[assignment]
        return net

    with pytest.raises(ConfigError, match=r"drop train\.compile"):
        NoiseTolerant(NoiseTolerant.Config(), tiny.task(build))


def test_it_learns_from_noisy_labels_better_than_cross_entropy() -> None:
    """Measured: 91 % against 85 %, of two seeds; with two sets and hardly a warm-up 92 % against 86 % of three."""
    settings = {"sets": 1, "warmup": 0.5}  # a step costs as much as five of cross-entropy
    assert np.mean(accuracy("mlnt", seeds=(0, 1), method=settings)) > np.mean(accuracy("ce", seeds=(0, 1)))
