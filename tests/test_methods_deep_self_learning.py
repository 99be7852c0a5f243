"""Deep self-learning: which labels are corrected, when, and how much they count."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.deep_self_learning import DeepSelfLearning


def make(build: Any = tiny.linear, **cfg: Any) -> DeepSelfLearning:
    torch.manual_seed(0)
    return DeepSelfLearning(DeepSelfLearning.Config.model_validate(cfg), tiny.task(build))


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.8, 1.0])
def test_loss_is_the_formula_before_and_after_the_warm_up(weight: float) -> None:
    method, batch = make(weight=weight), tiny.batch([3, 1, 8])
    method.corrected[:] = tiny.Y.roll(1)
    logits = tiny.array(method.predict(batch.x))
    given = -oracles.log_likelihood(logits, batch.y.tolist()).mean()
    own = -oracles.log_likelihood(logits, tiny.Y.roll(1)[batch.i].tolist()).mean()
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(given, rel=1e-5)
    method.begun.fill_(True)
    expected = (1 - weight) * given + weight * own
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


def heaps() -> tiny.Table:
    """Features that lie with their class, but for example 0 (label 0), which lies with class 2, and 7 (3: with 1)."""
    where = tiny.Y.clone()
    where[0], where[7] = 2, 1
    noise = 0.4 * torch.randn(tiny.N, tiny.K, generator=torch.Generator().manual_seed(4))
    return tiny.Table(5.0 * torch.nn.functional.one_hot(where, tiny.K) + noise)


def test_labels_that_lie_with_another_class_are_corrected_and_less_trusted() -> None:
    method = make([heaps()], prototypes=1, warmup=0.2)
    trust = method.trust(tiny.sweep(method, tiny.numbers))
    for epoch in (0, 1):
        assert method.epoch_start(tiny.at(epoch), tiny.sweep(method, tiny.numbers)) == {}
    assert torch.equal(method.corrected, tiny.Y)
    report = method.epoch_start(tiny.at(2), tiny.sweep(method, tiny.numbers))
    expected = tiny.Y.clone()
    expected[0], expected[7] = 2, 1
    assert torch.equal(method.corrected, expected)
    assert tiny.number(report["corrected"]) == pytest.approx(2 / tiny.N)
    assert report["prototypes"] == tiny.K
    now = method.trust(tiny.sweep(method, tiny.numbers))
    torch.testing.assert_close(now, (trust + (expected == tiny.Y)) / 2)


def test_one_epoch_of_warm_up_there_is_at_least() -> None:
    method = make(warmup=0.0)
    assert method.epoch_start(tiny.at(0, 1), tiny.sweep(method)) == {}
    assert not bool(method.begun)


def test_at_most_so_many_examples_and_prototypes_of_a_class() -> None:
    method = make(tiny.linear, examples=2, prototypes=5, warmup=0.0, distinct=1.0)
    rows, classes = method._prototypes(torch.randn(tiny.N, 6, generator=torch.Generator().manual_seed(0)))
    counts = classes.bincount(minlength=tiny.K)
    assert bool((counts <= 2).all())
    assert torch.equal(tiny.Y[rows], classes)


def test_a_class_without_examples_has_no_prototypes_and_is_given_to_nobody() -> None:
    y = tiny.Y.clamp(max=2)
    method = DeepSelfLearning(DeepSelfLearning.Config(), tiny.task(tiny.linear, y))
    method.epoch_start(tiny.at(5), tiny.sweep(method))
    assert int(method.corrected.max()) <= 2


def test_it_learns_from_noisy_labels_better_than_cross_entropy() -> None:
    """Measured: 93 % against 86 %."""
    ours, theirs = accuracy("deep_self_learning"), accuracy("ce")
    assert no_worse(ours, theirs)
    assert np.mean(ours) > np.mean(theirs)
