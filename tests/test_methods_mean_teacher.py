"""Mean teacher: the objective, its ramp, and a teacher that is at first the plain average of all weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.mean_teacher import MeanTeacher
from rte.views.batch import ViewPlan

PLAN = ViewPlan(weak=2)


def make(build: Any = tiny.linear, **cfg: Any) -> MeanTeacher:
    torch.manual_seed(0)
    return MeanTeacher(MeanTeacher.Config.model_validate(cfg), tiny.task(build))


def apart(method: MeanTeacher) -> MeanTeacher:
    """A teacher that differs from its student."""
    for p in method.teacher.parameters():
        p.data += torch.linspace(-0.5, 0.5, p.numel()).view_as(p)
    return method


@pytest.mark.parametrize(("q", "weight", "ramp", "epoch"), [(0.0, 100.0, 0.5, 2), (0.7, 3.0, 0.0, 0), (1.0, 7.0, 1, 9)])
def test_loss_is_the_formula(q: float, weight: float, ramp: float, epoch: int) -> None:
    method, batch = apart(make(q=q, weight=weight, ramp=float(ramp))), tiny.batch([3, 1, 8], PLAN)
    p = oracles.softmax(tiny.array(method.student(batch.weak(0))))
    target = oracles.softmax(tiny.array(method.teacher(batch.weak(1))))
    task = float(np.mean([-math.log(p[b, y]) if q == 0 else (1 - p[b, y] ** q) / q for b, y in enumerate(batch.y)]))
    u = min(epoch / 10 / ramp, 1.0) if ramp else 1.0
    agreement = float(((p - target) ** 2).sum() / (len(p) * tiny.K))
    terms = {k: tiny.number(v) for k, v in method.loss(batch, tiny.at(epoch)).items()}
    assert terms["task"] == pytest.approx(task, rel=1e-5)
    assert terms["consistency"] == pytest.approx(agreement, rel=1e-5)
    assert terms["loss"] == pytest.approx(task + weight * math.exp(-5 * (1 - u) ** 2) * agreement, rel=1e-5)


def test_no_gradient_goes_through_the_teacher_or_its_view() -> None:
    method, batch = apart(make(weight=50.0, ramp=0.0)), tiny.batch([4, 6, 10], PLAN)
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in method.teacher.parameters())
    bias = method.student[1].bias
    free = tiny.array(method.student(batch.weak(0)) - bias)
    target = oracles.softmax(tiny.array(method.teacher(batch.weak(1))))

    def objective(b: oracles.Array) -> float:
        p = oracles.softmax(free + b)
        nll = -oracles.log_likelihood(free + b, batch.y.tolist())
        return float(nll.mean() + 50.0 * ((p - target) ** 2).mean())

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-4)


def test_the_teacher_is_the_mean_of_all_weights_until_its_decay_is_reached() -> None:
    method = make([tiny.Table(torch.zeros(tiny.N, tiny.K))], decay=0.8)
    seen, expected = [0.0], 0.0
    for step in range(8):
        value = float(step + 1) ** 2
        method.student.rows.data.fill_(value)
        method.after_step(tiny.at(step=step))
        seen.append(value)
        # 1 - 1/(k + 1) is below 0.8 for k < 4, and equal at k = 4
        expected = float(np.mean(seen)) if step < 4 else 0.8 * expected + 0.2 * value
        assert float(method.teacher.module.rows.mean()) == pytest.approx(expected, rel=1e-5), step


def test_two_weak_views_are_asked_for_and_the_student_sees_the_first_alone() -> None:
    method = make([tiny.Table(torch.randn(tiny.N, tiny.K, generator=torch.Generator().manual_seed(1)))], ramp=0.0)
    assert method.views(tiny.at()) == PLAN
    batch = tiny.batch([0, 1], PLAN, make=lambda i, view: tiny.numbers([k + 5 * view for k in i]))
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    moved = method.student.rows.grad.abs().sum(1) > 0
    assert moved.nonzero().squeeze(1).tolist() == [0, 1]
    assert method.cost(tiny.at()) == 4.0


def test_it_learns_from_noisy_labels_better_than_cross_entropy() -> None:
    """Measured: 92 % against 86 %."""
    ours, theirs = accuracy("mean_teacher"), accuracy("ce")
    assert no_worse(ours, theirs)
    assert np.mean(ours) > np.mean(theirs)
