"""AugMix's loss: cross-entropy on the weak view and a divergence of three views."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.augmix import AugMixLoss
from rte.parts.schedules import Linear
from rte.views.batch import ViewPlan

PLAN = ViewPlan(strong=2)


def make(build: Any = tiny.linear, **cfg: Any) -> AugMixLoss:
    torch.manual_seed(0)
    return AugMixLoss(AugMixLoss.Config.model_validate(cfg), tiny.task(build))


@pytest.mark.parametrize("weight", [0.0, 12.0])
def test_loss_is_the_formula(weight: float) -> None:
    method, batch = make(weight=weight), tiny.batch([3, 7, 1, 10], PLAN)
    assert method.views(tiny.at()) == PLAN
    logits = [tiny.array(method.predict(batch.weak(k))) for k in range(3)]
    task = -oracles.log_likelihood(logits[0], batch.y.tolist()).mean()
    jsd = oracles.jensen_shannon([oracles.softmax(f) for f in logits]).mean()
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(task + weight * jsd, rel=1e-5)


def test_the_label_is_learnt_on_the_weak_view_alone_and_agreement_on_all() -> None:
    def rows(weight: float) -> list[int]:
        """Examples 0 to 2 are the weak views, 4 to 6 and 8 to 10 the strong ones."""
        method = make([tiny.Table(torch.randn(tiny.N, tiny.K))], weight=weight)
        batch = tiny.batch([0, 1, 2], PLAN, make=lambda i, view: tiny.numbers([k + 4 * view for k in i]))
        torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
        found: list[int] = method.net.rows.grad.abs().sum(1).nonzero().squeeze(1).tolist()
        return found

    assert rows(0.0) == [0, 1, 2]
    assert rows(12.0) == [0, 1, 2, 4, 5, 6, 8, 9, 10]


def test_weight_follows_its_schedule() -> None:
    method, batch = make(weight=Linear(start=0, end=10)), tiny.batch([1, 2], PLAN)
    for epoch in (0, 3, 10):
        terms = {name: tiny.number(value) for name, value in method.loss(batch, tiny.at(epoch)).items()}
        assert terms["loss"] == pytest.approx(terms["task"] + epoch * terms["jsd"], rel=1e-5)


def test_views_share_their_batch_statistics() -> None:
    method, seen = make(tiny.normed), []
    method.net.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    method.loss(tiny.batch([0, 1, 2], PLAN), tiny.at())
    assert seen == [9]


def test_it_learns_no_less_from_noisy_digits_than_cross_entropy() -> None:
    assert no_worse(accuracy("augmix", seeds=(0, 1)), accuracy("ce", seeds=(0, 1)))
    assert np.mean(accuracy("augmix", seeds=(0, 1))) > 0.85
