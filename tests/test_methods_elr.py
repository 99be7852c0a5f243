"""Early-learning regularisation: the objective, and a table that knows examples by their index."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import STILL, accuracy

from rte.methods.elr import EarlyLearningRegularisation
from rte.parts.schedules import Linear


def make(build: Any = tiny.linear, **cfg: Any) -> EarlyLearningRegularisation:
    torch.manual_seed(0)
    return EarlyLearningRegularisation(EarlyLearningRegularisation.Config.model_validate(cfg), tiny.task(build))


@pytest.mark.parametrize(("beta", "weight"), [(0.7, 3.0), (0.9, 1.0), (0.0, 7.0), (0.5, 0.0)])
def test_loss_and_targets_are_the_formulas_over_several_steps(beta: float, weight: float) -> None:
    method = make(beta=beta, weight=weight)
    update, expected = tiny.sgd(method, lr=0.5), np.zeros((tiny.N, tiny.K))
    for i in ([3, 1, 8], [8, 0, 3], [1, 3, 11]):
        batch = tiny.batch(i)
        logits = tiny.array(method.predict(batch.x))
        loss, rows = oracles.elr_objective(logits, batch.y.tolist(), expected[i], beta=beta, weight=weight)
        expected[i] = rows
        terms = method.step(batch, tiny.at(), update)
        assert tiny.number(terms["loss"]) == pytest.approx(loss, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(method.targets.numpy(), expected, atol=1e-6)
    assert not method.targets[[2, 4, 5, 6, 7, 9, 10]].any()  # examples that were not seen


def test_the_table_is_addressed_by_index_not_by_position() -> None:
    i = [5, 2, 9, 0, 7]
    straight, shuffled = make(), make()
    for method, order in ((straight, i), (shuffled, [9, 7, 5, 0, 2])):
        method.loss(tiny.batch(order), tiny.at())
        method.loss(tiny.batch(order[::-1]), tiny.at())
    torch.testing.assert_close(straight.targets, shuffled.targets)
    rows = straight.targets[i]
    assert len(rows.unique(dim=0)) == len(i)  # else any order would do


def test_the_gradient_takes_the_targets_as_constants() -> None:
    method, batch = make(weight=3.0), tiny.batch([4, 6, 10])
    method.loss(tiny.batch([4, 6, 10], make=lambda i, view: tiny.images(i, 5)), tiny.at())
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias, targets = method.net[1].bias, tiny.array(method.targets[batch.i])
    free = tiny.array(method.predict(batch.x) - bias)

    def objective(b: oracles.Array) -> float:
        p = oracles.softmax(free + b)  # far enough from 0 and 1 for the margin not to matter
        nll = -oracles.log_likelihood(free + b, batch.y.tolist())
        return float((nll + 3.0 * np.log(1 - (targets * p).sum(1))).mean())

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-5)
    assert not method.targets.requires_grad


def test_a_certain_network_has_a_finite_loss_and_gradient() -> None:
    method = make([tiny.Table(100.0 * torch.nn.functional.one_hot(tiny.Y, tiny.K))], beta=0.0, weight=1.0)
    update = tiny.sgd(method)
    for _ in range(3):
        terms = method.step(tiny.batch(range(tiny.N), make=tiny.numbers), tiny.at(), update)
    sure, rest = 1 - 1e-4, 1e-4
    overlap = (sure**2 + 3 * rest**2) / (sure + 3 * rest)
    assert tiny.number(terms["elr"]) == pytest.approx(np.log(1 - overlap), rel=1e-3)
    assert all(p.isfinite().all() for p in method.parameters())


def test_the_regulariser_resists_a_label_that_contradicts_the_targets() -> None:
    """Once an example's target is settled on another class, the given label moves the prediction less."""
    moved = []
    for weight in (0.0, 3.0):
        method = make([tiny.Table(torch.tensor([[0.0, 4.0, 0.0, 0.0]]).repeat(tiny.N, 1))], weight=weight)
        method.targets[0] = torch.tensor([0.01, 0.97, 0.01, 0.01])
        method.step(tiny.batch([0], make=tiny.numbers), tiny.at(), tiny.sgd(method))
        moved.append(float(method.net.rows[0].softmax(0)[0].detach()))
    assert moved[1] < moved[0]


def test_weight_follows_its_schedule() -> None:
    method, batch = make(weight=Linear(start=0, end=10), beta=0.0), tiny.batch([1, 2])
    for epoch in (0, 3, 10):
        terms = {name: tiny.number(value) for name, value in method.loss(batch, tiny.at(epoch)).items()}
        assert terms["loss"] == pytest.approx(terms["task"] + epoch * terms["elr"], rel=1e-5)


def test_trust_is_the_target_of_the_given_label() -> None:
    method = make()
    method.targets.copy_(torch.rand(tiny.N, tiny.K))
    trust = method.trust(tiny.sweep(method))
    assert trust.tolist() == [method.targets[i, tiny.Y[i]].item() for i in range(tiny.N)]


def test_it_keeps_more_of_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("elr", **STILL)) > np.mean(accuracy("ce", **STILL)) + 0.05  # measured: 0.783 and 0.667
