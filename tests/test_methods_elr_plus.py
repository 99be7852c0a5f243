"""ELR+: the objective on mixed images, targets from the other network's average, ramps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.elr_plus import EarlyLearningPlus
from rte.parts.mixing import draw

INDEX = [3, 1, 8, 0, 7]


def make(build: Any = tiny.linear, **cfg: Any) -> EarlyLearningPlus:
    torch.manual_seed(0)
    return EarlyLearningPlus(EarlyLearningPlus.Config.model_validate(cfg), tiny.task(build))


def bounded(logits: oracles.Array) -> oracles.Array:
    return np.clip(oracles.softmax(logits), 1e-4, 1 - 1e-4)


def by_definition(method: EarlyLearningPlus, before: oracles.Array, mixes: list[Any], rise: float) -> Any:
    """The objective in float64, and the targets it leaves: of network k by the average of the other."""
    batch, cfg, total, after = tiny.batch(INDEX), method.cfg, 0.0, before.copy()
    one_hot = np.eye(tiny.K)[batch.y.numpy()]
    x = tiny.array(batch.x)
    for k, (share, order) in enumerate(mixes):
        p = bounded(tiny.array(method.averages[1 - k](batch.x)))
        rows = cfg.beta * before[INDEX, k] + (1 - cfg.beta) * p / p.sum(1, keepdims=True)
        after[INDEX, k] = rows
        q, y = (share * v + (1 - share) * v[order] for v in (rows, one_hot))
        if cfg.relabel:
            y = y * q / (y * q).sum(1, keepdims=True)
        mixed = torch.tensor(share * x + (1 - share) * x[order], dtype=torch.float32)
        logits = tiny.array(method.nets[k](mixed))
        task = -(y * np.log(oracles.softmax(logits))).sum(1)
        total += (task + cfg.weight.at(tiny.at()) * rise * np.log(1 - (q * bounded(logits)).sum(1))).mean()
    return total, after


@pytest.mark.parametrize(("alpha", "relabel"), [(0.0, False), (1.0, False), (1.0, True)])
def test_loss_and_targets_are_the_formulas(alpha: float, relabel: bool) -> None:
    method = make(alpha=alpha, relabel=relabel, weight=5.0, beta=0.6)
    method.targets.copy_(torch.rand(tiny.N, 2, tiny.K))
    for average in method.averages:
        for value in average.parameters():
            value.data.add_(torch.randn_like(value))
    torch.manual_seed(3)
    mixes = [(share, order.numpy()) for share, order in (draw(len(INDEX), alpha, dominant=True) for _ in range(2))]
    expected, after = by_definition(method, tiny.array(method.targets), mixes, 1.0)
    torch.manual_seed(3)
    terms = method.loss(tiny.batch(INDEX), tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx(float(expected), rel=1e-4)
    np.testing.assert_allclose(method.targets.numpy(), after, atol=1e-5)
    assert (not alpha) or all(0.5 <= share < 1 for share, _ in mixes)


def test_no_gradient_reaches_the_averages_and_each_network_has_its_own() -> None:
    method = make(tiny.normed)
    before = tiny.copy_state(method.averages)
    method.step(tiny.batch(INDEX), tiny.at(), tiny.sgd(method))
    assert not tiny.changed(method.averages, before)
    assert not any(p.requires_grad for p in method.averages.parameters())
    assert not any(average.training for average in method.averages)
    method.after_step(tiny.at(step=1))
    assert tiny.changed(method.averages, before)


@pytest.mark.parametrize(
    ("fraction", "decay"), [(0.0, 0.997 * math.exp(-5)), (0.25, 0.997 * math.exp(-1.25)), (0.8, 0.997)]
)
def test_the_averages_follow_more_slowly_as_the_run_goes_on(fraction: float, decay: float) -> None:
    method = make()
    with torch.no_grad():
        method.nets[0][1].bias.fill_(1.0)
        method.averages[0].module[1].bias.fill_(0.0)
    method.after_step(tiny.at(done=fraction))
    assert method.averages[0].module[1].bias.tolist() == pytest.approx([1 - decay] * tiny.K, rel=1e-4)


def test_the_weight_rises_over_its_ramp() -> None:
    method, found = make(ramp=0.4, alpha=0.0, beta=0.0), []
    for fraction in (0.0, 0.2, 0.4, 0.9):
        terms = {k: tiny.number(v) for k, v in method.loss(tiny.batch(INDEX), tiny.at(done=fraction)).items()}
        found.append((terms["loss"] - 2 * terms["task"]) / (2 * terms["elr"]) / 3)
    assert found == pytest.approx([math.exp(-5), math.exp(-1.25), 1.0, 1.0], rel=1e-3)


def test_trust_is_what_both_targets_say_of_the_given_label() -> None:
    method = make()
    method.targets.copy_(torch.rand(tiny.N, 2, tiny.K))
    expected = [float(method.targets[i, :, tiny.Y[i]].mean()) for i in range(tiny.N)]
    assert method.trust(tiny.sweep(method)).tolist() == pytest.approx(expected)


def test_it_learns_no_less_from_noisy_digits_than_cross_entropy() -> None:
    seeds = (0, 1)  # two networks take twice the time
    assert no_worse(accuracy("elr_plus", seeds=seeds), accuracy("ce", seeds=seeds))
