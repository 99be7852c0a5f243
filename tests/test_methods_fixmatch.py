"""FixMatch: sure predictions on the weak view become labels of the strong one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.fixmatch import FixMatch
from rte.views.batch import ViewPlan

PLAN = ViewPlan(strong=1)


def make(build: Any = tiny.linear, **cfg: Any) -> FixMatch:
    torch.manual_seed(0)
    return FixMatch(FixMatch.Config.model_validate(cfg), tiny.task(build))


@pytest.mark.parametrize(("q", "weight", "threshold"), [(0.0, 1.0, 0.5), (0.7, 2.5, 0.0), (0.0, 3.0, 0.4)])
def test_loss_is_the_formula(q: float, weight: float, threshold: float) -> None:
    method, batch = make(q=q, weight=weight, threshold=threshold), tiny.batch(range(tiny.N), PLAN)
    p = oracles.softmax(tiny.array(method.student(batch.x)))
    strong = oracles.softmax(tiny.array(method.student(batch.strong(0))))
    task, guided, sure = 0.0, 0.0, 0
    for b, y in enumerate(batch.y.tolist()):
        task += -math.log(p[b, y]) if q == 0 else (1 - p[b, y] ** q) / q
        best = int(np.argmax(p[b]))
        if p[b, best] >= threshold:
            sure += 1
            guided -= math.log(strong[b, best])
    terms = {k: tiny.number(v) for k, v in method.loss(batch, tiny.at()).items()}
    assert 0 < sure < tiny.N or threshold == 0.0
    assert terms["sure"] == pytest.approx(sure / tiny.N)
    assert terms["guided"] == pytest.approx(guided / tiny.N, rel=1e-5)
    assert terms["loss"] == pytest.approx((task + weight * guided) / tiny.N, rel=1e-5)


def test_the_weak_view_s_gradient_is_that_of_its_label_alone() -> None:
    """Rows of a table show who learns: strong views from the sure predictions, weak ones from the given labels."""
    logits = torch.zeros(tiny.N, tiny.K)
    logits[0, 2] = 9.0  # example 0 is sure of class 2, and its label is 0
    method = make([tiny.Table(logits)])
    batch = tiny.batch([0, 1], PLAN, make=lambda i, view: tiny.numbers([k + 6 * view for k in i]))
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    grad, p = method.student.rows.grad, logits.softmax(1)
    for row in (0, 1):
        expected = (p[row] - torch.eye(tiny.K)[tiny.Y[row]]) / 2
        torch.testing.assert_close(grad[row], expected)
    torch.testing.assert_close(grad[6], (p[6] - torch.eye(tiny.K)[2]) / 2)
    assert not grad[7].any(), "example 1 is not sure"


def test_without_a_sure_prediction_the_loss_is_the_task_s() -> None:
    method = make([tiny.Table(torch.zeros(tiny.N, tiny.K))], weight=10.0)
    terms = method.loss(tiny.batch([5], PLAN, make=tiny.numbers), tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx(math.log(tiny.K), rel=1e-5)
    assert tiny.number(terms["guided"]) == 0.0


def test_the_average_is_reported_and_gives_no_targets() -> None:
    method, batch = make(threshold=0.0, decay=0.5, warmup=False), tiny.batch([1, 2], PLAN)
    before = tiny.number(method.loss(batch, tiny.at())["loss"])
    for p in method.average.parameters():
        p.data += 1.0 + torch.arange(p.numel()).view_as(p)
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == before
    torch.testing.assert_close(method.predict(batch.x), method.average.module(batch.x))
    start = method.average.module[1].bias.clone()
    method.after_step(tiny.at())
    torch.testing.assert_close(method.average.module[1].bias, (start + method.student[1].bias) / 2)


def test_it_learns_from_noisy_labels_no_worse_than_cross_entropy() -> None:
    """Measured: 88 % against 86 %."""
    assert no_worse(accuracy("fixmatch"), accuracy("ce"))
