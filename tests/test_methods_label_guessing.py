"""Label guessing against its objective in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import STILL, accuracy

from rte.methods.label_guessing import LabelGuessing
from rte.views.batch import ViewPlan

INDEX = [7, 2, 9, 0, 5]


def make(build: Any = tiny.linear, **cfg: Any) -> LabelGuessing:
    torch.manual_seed(0)
    return LabelGuessing(LabelGuessing.Config.model_validate(cfg), tiny.task(build))


def guess(views: list[oracles.Array], temperature: float) -> oracles.Array:
    return oracles.sharpen(np.mean([oracles.softmax(view) for view in views], axis=0), temperature)


def objective(
    x: Any, views: Any, y: Any, *, q: float, jsd: float, weight: float, k: int, fixed: Any = None, at: Any = None
) -> float:
    """`fixed`: the guess, where it is not to follow the views; `at`: the same for the logits on x inside the JSD."""
    total = float(oracles.gce(x, y, q).mean())
    p = [oracles.softmax(view) for view in views]
    if jsd:
        total += jsd * float(oracles.jensen_shannon([oracles.softmax(x if at is None else at), *p[:2]]).mean())
    if weight:
        target = guess(views[:k], 0.5) if fixed is None else fixed
        total += weight * float(oracles.ensemble_consistency(target, p[:k]).mean())
    return total


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(("jsd", "weight"), [(12.0, 1.0), (0.0, 3.0), (5.0, 0.0), (0.0, 0.0)])
def test_loss_is_the_whole_objective(k: int, jsd: float, weight: float) -> None:
    method = make(q=0.3, jsd_weight=jsd, ecr_weight=weight, views=k)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    terms = method.loss(batch, tiny.at())
    x, *views = (tiny.array(method.net(view)) for view in batch.views.chunk(batch.plan.total))
    expected = objective(x, views, batch.y.tolist(), q=0.3, jsd=jsd, weight=weight, k=k)
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert ("jsd" in terms, "ecr" in terms) == (jsd > 0, weight > 0)


@pytest.mark.parametrize(
    ("k", "jsd", "weight", "strong"), [(4, 12, 1, 4), (1, 12, 1, 2), (1, 0, 1, 1), (4, 12, 0, 2), (4, 0, 0, 0)]
)
def test_as_many_strong_views_are_asked_for_as_the_terms_need(k: int, jsd: float, weight: float, strong: int) -> None:
    assert make(views=k, jsd_weight=jsd, ecr_weight=weight).views(tiny.at()) == ViewPlan(strong=strong)


def test_no_gradient_passes_through_the_guess_nor_through_the_original() -> None:
    method = make(q=0.4, jsd_weight=2.0, ecr_weight=3.0, views=3)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.net[1].bias
    x, *views = (tiny.array(method.net(view)) for view in batch.views.chunk(4))
    fixed, start = guess(views, 0.5), tiny.array(bias)

    def moved(b: oracles.Array) -> float:
        free = [view + b - start for view in views]
        return objective(x + b - start, free, batch.y.tolist(), q=0.4, jsd=2.0, weight=3.0, k=3, fixed=fixed, at=x)

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(moved, start), atol=1e-5)


def test_a_certain_guess_asks_for_certainty_and_a_temperature_of_one_for_agreement() -> None:
    one = make(views=1, jsd_weight=0.0, temperature=1.0)
    batch = tiny.batch(INDEX, one.views(tiny.at()))
    assert tiny.number(one.loss(batch, tiny.at())["ecr"]) == 0.0  # a view agrees with the mean of itself
    assert tiny.number(make(views=1, jsd_weight=0.0).loss(batch, tiny.at())["ecr"]) > 1e-3


def test_the_network_itself_is_reported() -> None:
    method, x = make(), tiny.images(INDEX)
    assert torch.equal(method.predict(x), method.net(x))
    assert method.networks() == {}


def test_it_learns_more_of_noisy_digits_than_cross_entropy() -> None:
    method = {"q": 0.7, "jsd_weight": 4.0, "ecr_weight": 4.0}
    ours = accuracy("label_guessing", method=method, **STILL)
    assert np.mean(ours) > np.mean(accuracy("ce", **STILL)) + 0.03  # measured: 0.774 and 0.667
