"""Augmentation anchoring against its objective in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import STILL, accuracy

from rte.methods.augmentation_anchoring import AugmentationAnchoring
from rte.methods.rte import RobustTemporalEnsembling
from rte.views.batch import ViewPlan

INDEX = [7, 2, 9, 0, 5]


def moved(method: Any) -> Any:
    """A teacher that differs from its student."""
    torch.manual_seed(1)
    with torch.no_grad():
        for p in method.student.parameters():
            p.add_(torch.randn_like(p))
    return method


def make(build: Any = tiny.linear, **cfg: Any) -> AugmentationAnchoring:
    torch.manual_seed(0)
    settings = AugmentationAnchoring.Config.model_validate(cfg)
    method: AugmentationAnchoring = moved(AugmentationAnchoring(settings, tiny.task(build)))
    return method


def objective(
    x: Any, views: Any, anchor: Any, y: Any, *, q: float, jsd: float, weight: float, k: int, temperature: float = 0.5
) -> float:
    total = float(oracles.gce(x, y, q).mean())
    p = [oracles.softmax(view) for view in views]
    if jsd:
        total += jsd * float(oracles.jensen_shannon([oracles.softmax(anchor), *p[:2]]).mean())
    if weight:
        target = oracles.sharpen(oracles.softmax(anchor), temperature)
        total += weight * float(oracles.ensemble_consistency(target, p[:k]).mean())
    return total


@pytest.mark.parametrize("ema", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(("jsd", "weight"), [(12.0, 1.0), (0.0, 3.0), (5.0, 0.0), (0.0, 0.0)])
def test_loss_is_the_whole_objective(ema: bool, k: int, jsd: float, weight: float) -> None:
    method = make(q=0.3, jsd_weight=jsd, ecr_weight=weight, views=k, ema=ema)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    terms = method.loss(batch, tiny.at())
    x, *views = (tiny.array(method.student(view)) for view in batch.views.chunk(batch.plan.total))
    anchor = tiny.array((method.teacher or method.student)(batch.x))
    expected = objective(x, views, anchor, batch.y.tolist(), q=0.3, jsd=jsd, weight=weight, k=k)
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert ("jsd" in terms, "ecr" in terms) == (jsd > 0, weight > 0)


@pytest.mark.parametrize(
    ("k", "jsd", "weight", "strong"), [(4, 12, 1, 4), (1, 12, 1, 2), (1, 0, 1, 1), (4, 12, 0, 2), (4, 0, 0, 0)]
)
def test_as_many_strong_views_are_asked_for_as_the_terms_need(k: int, jsd: float, weight: float, strong: int) -> None:
    assert make(views=k, jsd_weight=jsd, ecr_weight=weight).views(tiny.at()) == ViewPlan(strong=strong)


def test_no_gradient_passes_through_the_anchor() -> None:
    method = make(q=0.4, jsd_weight=2.0, ecr_weight=3.0, views=3)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.student[1].bias
    start = tiny.array(bias)
    x, *views = (tiny.array(method.student(view)) for view in batch.views.chunk(4))

    def at(b: oracles.Array) -> float:
        shifted = [view + b - start for view in views]
        return objective(x + b - start, shifted, x, batch.y.tolist(), q=0.4, jsd=2.0, weight=3.0, k=3)

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(at, start), atol=1e-5)


def test_with_a_moving_average_it_is_rte_with_a_sharpened_target() -> None:
    ours = make(views=3, ema=True)
    torch.manual_seed(0)
    cfg = RobustTemporalEnsembling.Config.model_validate({"views": 3, "temperature": 0.5})
    theirs = moved(RobustTemporalEnsembling(cfg, tiny.task(tiny.linear)))
    batch = tiny.batch(INDEX, ours.views(tiny.at()))
    assert tiny.number(ours.loss(batch, tiny.at())["loss"]) == pytest.approx(
        tiny.number(theirs.loss(batch, tiny.at())["loss"]), rel=1e-6
    )


@pytest.mark.parametrize("ema", [False, True])
def test_whoever_anchors_is_reported(ema: bool) -> None:
    method, x = make(ema=ema, decay=0.5), tiny.images(INDEX)
    assert torch.equal(method.predict(x), method.student(x)) != ema
    assert set(method.networks()) == ({"student"} if ema else set())
    if method.teacher is not None:
        before = tiny.array(method.teacher.module[1].bias)
        method.after_step(tiny.at())
        middle = (before + tiny.array(method.student[1].bias)) / 2
        np.testing.assert_allclose(tiny.array(method.teacher.module[1].bias), middle, rtol=1e-5)


def test_it_learns_more_of_noisy_digits_than_cross_entropy() -> None:
    method = {"q": 0.7, "jsd_weight": 4.0, "ecr_weight": 4.0}
    ours = accuracy("augmentation_anchoring", method=method, **STILL)
    assert np.mean(ours) > np.mean(accuracy("ce", **STILL)) + 0.03  # measured: 0.746 and 0.667
