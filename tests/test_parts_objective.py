"""The objective that RTE and its ablations share, against its formula in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from torch import Tensor

from rte.methods.base import Progress
from rte.parts.objective import PAIR, ObjectiveSettings, objective
from rte.parts.schedules import Linear, constant

B, K = 5, 4


def distributions(seed: int, b: int = B) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).dirichlet(np.ones(K), size=b))


TASK, P, PAIRED, TARGET = torch.arange(5.0).double(), distributions(0), [distributions(1), distributions(2)], 3
VIEWS = [distributions(k, b=7) for k in (4, 5, 6)]


@pytest.mark.parametrize(("jsd", "ecr", "temperature"), [*product([0.0, 0.5, 12.0], [0.0, 1.0, 5.0], [1.0, 0.5])])
def test_it_is_the_weighted_sum_of_its_terms(jsd: float, ecr: float, temperature: float) -> None:
    target = distributions(TARGET, b=7)
    terms = objective(
        TASK, p_orig=P, pair=PAIRED, target=target, views=VIEWS, temperature=temperature, jsd_weight=jsd, ecr_weight=ecr
    )
    divergence = oracles.jensen_shannon([p.numpy() for p in (P, *PAIRED)]).mean()
    sharp = oracles.sharpen(target.numpy(), temperature)
    distance = oracles.ensemble_consistency(sharp, [view.numpy() for view in VIEWS]).mean()
    expected = {"task": 2.0} | ({"jsd": divergence} if jsd else {}) | ({"ecr": distance} if ecr else {})
    assert {name: float(value) for name, value in terms.items() if name != "loss"} == pytest.approx(expected, rel=1e-9)
    assert float(terms["loss"]) == pytest.approx(2.0 + jsd * divergence + ecr * distance, rel=1e-9)


@pytest.mark.parametrize(
    "lacking",
    [{"p_orig": None, "target": None}, {"pair": [], "views": []}, {"jsd_weight": 0.0, "ecr_weight": 0.0}],
)
def test_terms_without_views_or_weight_are_left_out(lacking: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"p_orig": P, "pair": PAIRED, "target": P, "views": PAIRED}
    whole |= {"temperature": 1.0, "jsd_weight": 1.0, "ecr_weight": 1.0, **lacking}
    terms = objective(TASK, **whole)
    assert set(terms) == {"loss", "task"}
    assert terms["loss"] == terms["task"] == 2.0


def test_the_gradient_is_that_of_the_formula() -> None:
    logits = torch.tensor(np.random.default_rng(7).normal(size=(2, B, K)), requires_grad=True)
    one, two = logits.softmax(2)
    terms = objective(
        TASK, p_orig=P, pair=[one, two], target=P, views=[one], temperature=0.5, jsd_weight=3.0, ecr_weight=2.0
    )
    torch.as_tensor(terms["loss"]).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None

    def value(flat: oracles.Array) -> float:
        first, second = (oracles.softmax(x) for x in flat.reshape(2, B, K))
        divergence = oracles.jensen_shannon([P.numpy(), first, second]).mean()
        distance = oracles.ensemble_consistency(oracles.sharpen(P.numpy(), 0.5), [first]).mean()
        return float(3.0 * divergence + 2.0 * distance)

    slope = oracles.slope(value, logits.detach().numpy().ravel())
    np.testing.assert_allclose(logits.grad.numpy().ravel(), slope, atol=1e-7)


def test_equal_predictions_cost_nothing() -> None:
    terms = objective(
        TASK, p_orig=P, pair=[P, P], target=P, views=[P, P], temperature=1.0, jsd_weight=9.0, ecr_weight=9.0
    )
    assert float(terms["loss"]) == pytest.approx(2.0, abs=1e-12)


def test_views_are_wanted_where_their_term_has_a_weight() -> None:
    cfg, t = ObjectiveSettings(), Progress(0, 10)
    assert (cfg.n_star(t), cfg.pair(t)) == (2, PAIR)
    cfg = ObjectiveSettings(jsd_weight=constant(0.0), ecr_weight=constant(0.0))
    assert (cfg.n_star(t), cfg.pair(t)) == (0, 0)
    cfg = ObjectiveSettings(views=constant(2.6), jsd_weight=Linear(start=0.0, end=1.0))
    assert (cfg.n_star(t), cfg.pair(t), cfg.pair(Progress(1, 10))) == (3, 0, PAIR)
