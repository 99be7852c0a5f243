"""The generalised Jensen-Shannon loss: the formula, its limits, and what it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.gjs import GeneralisedJensenShannon
from rte.views.batch import ViewPlan


def make(build: Any = tiny.linear, **cfg: Any) -> GeneralisedJensenShannon:
    torch.manual_seed(0)
    return GeneralisedJensenShannon(GeneralisedJensenShannon.Config.model_validate(cfg), tiny.task(build))


def by_definition(views: list[oracles.Array], y: list[int], weight: float, *, scaled: bool) -> float:
    total, share = 0.0, (1 - weight) / len(views)
    for b, label in enumerate(y):
        parts = [(weight, np.eye(tiny.K)[label])] + [(share, oracles.softmax(logits)[b]) for logits in views]
        middle = sum(w * d for w, d in parts)
        total += sum(w * oracles.kl(d.tolist(), middle.tolist()) for w, d in parts)
    scale = -1 / ((1 - weight) * np.log(1 - weight)) if scaled else 1.0
    return float(scale * total / len(y))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("views", "weight"), [(1, 0.5), (2, 0.3), (2, 0.9), (3, 0.1)])
def test_loss_is_the_formula_on_strong_views_alone(views: int, weight: float, scaled: bool) -> None:
    method = make(views=views, label_weight=weight, scaled=scaled)
    assert method.views(tiny.at()) == ViewPlan(weak=1, strong=views)
    batch = tiny.batch([3, 7, 1, 10], ViewPlan(strong=views))
    logits = [tiny.array(method.predict(batch.strong(k))) for k in range(views)]
    expected = by_definition(logits, batch.y.tolist(), weight, scaled=scaled)
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


def test_the_gradient_is_that_of_the_definition() -> None:
    method, batch = make(label_weight=0.4), tiny.batch([4, 6, 10], ViewPlan(strong=2))
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.net[1].bias
    free = [tiny.array(method.predict(batch.strong(k)) - bias) for k in range(2)]

    def objective(b: oracles.Array) -> float:
        return by_definition([f + b for f in free], batch.y.tolist(), 0.4, scaled=True)

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-5)


@pytest.mark.parametrize(("weight", "like"), [(1e-4, "cross-entropy"), (0.9999, "absolute error")])
def test_one_view_lies_between_cross_entropy_and_the_absolute_error(weight: float, like: str) -> None:
    method, batch = make(views=1, label_weight=weight), tiny.batch([3, 7, 1], ViewPlan(strong=1))
    logits, y = tiny.array(method.predict(batch.strong(0))), batch.y.tolist()
    limit = -oracles.log_likelihood(logits, y) if like == "cross-entropy" else 1 - oracles.softmax(logits)[range(3), y]
    found = tiny.number(method.loss(batch, tiny.at())["loss"])
    assert found == pytest.approx(limit.mean(), rel=0.12 if like == "absolute error" else 0.01)


def test_certain_predictions_that_contradict_the_label_stay_finite() -> None:
    method = make([tiny.Table(200.0 * torch.eye(tiny.K)[(tiny.Y + 1) % tiny.K])])
    batch = tiny.batch(range(tiny.N), ViewPlan(strong=2), make=tiny.numbers)
    terms = method.step(batch, tiny.at(), tiny.sgd(method))
    assert np.isfinite(tiny.number(terms["loss"]))
    assert method.net.rows.isfinite().all()


def test_it_learns_more_from_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("gjs", seeds=(0, 1))) > np.mean(accuracy("ce", seeds=(0, 1))) + 0.03
