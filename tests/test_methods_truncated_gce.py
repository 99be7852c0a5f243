"""Truncated GCE: the loss, when labels are chosen anew, and by what."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.truncated_gce import TruncatedGCE

INDEX = [3, 11, 4, 6, 0]


def make(build: Any = tiny.linear, **cfg: Any) -> TruncatedGCE:
    torch.manual_seed(0)
    return TruncatedGCE(TruncatedGCE.Config.model_validate(cfg), tiny.task(build))


def by_probability(p: list[float], **cfg: Any) -> TruncatedGCE:
    """A method whose network gives these probabilities to the given labels."""
    return make([tiny.table([-math.log(value) for value in p])], **cfg)


PROBABILITIES = [0.9, 0.2, 0.6, 0.51, 0.49, 0.8, 0.1, 0.7, 0.3, 0.55, 0.05, 0.95]


@pytest.mark.parametrize(("q", "k"), [(0.7, 0.5), (0.0, 0.5), (1.0, 0.3), (0.3, 0.8)])
def test_the_loss_is_the_formula(q: float, k: float) -> None:
    method, batch = make(q=q, k=k), tiny.batch(INDEX)
    method.kept.copy_(torch.arange(tiny.N) % 2)
    losses = oracles.gce(tiny.array(method.predict(batch.x)), batch.y.tolist(), q)
    limit = -math.log(k) if q == 0 else (1 - k**q) / q
    w = np.array([i % 2 for i in INDEX])
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx((w * (losses - limit)).mean(), rel=1e-5)
    assert tiny.number(terms["task"]) == pytest.approx(losses.mean(), rel=1e-5)
    assert tiny.number(terms["kept"]) == pytest.approx(w.mean())


def test_labels_that_are_left_out_have_no_gradient_and_the_others_that_of_gce() -> None:
    method = by_probability(PROBABILITIES)
    method.epoch_start(tiny.at(5), tiny.sweep(method, tiny.numbers))
    terms = method.loss(tiny.batch(range(tiny.N), make=tiny.numbers), tiny.at(5))
    torch.as_tensor(terms["loss"]).backward()  # type: ignore[no-untyped-call]
    moved = method.net.rows.grad.abs().sum(1)
    for p, size in zip(PROBABILITIES, moved.tolist(), strict=True):  # dL/dz = -p^q (onehot - softmax)
        assert size == pytest.approx(2 * p**0.7 * (1 - p) / tiny.N if p > 0.5 else 0.0, abs=1e-6)


def test_labels_are_chosen_at_the_start_and_after_each_interval_alone() -> None:
    method = by_probability(PROBABILITIES, start=0.3, every=0.2)
    chosen = [epoch for epoch in range(10) if method.epoch_start(tiny.at(epoch), tiny.sweep(method, tiny.numbers))]
    assert chosen == [3, 5, 7, 9]
    assert method.kept.tolist() == [float(p > 0.5) for p in PROBABILITIES]


@pytest.mark.parametrize(("epochs", "first"), [(2, 1), (3, 1), (6, 2), (120, 40)])
def test_the_share_of_the_run_decides_and_the_first_epoch_never_leaves_out(epochs: int, first: int) -> None:
    method = by_probability(PROBABILITIES)
    chosen = [e for e in range(epochs) if method.epoch_start(tiny.at(e, epochs), tiny.sweep(method, tiny.numbers))]
    assert chosen[0] == first
    assert by_probability(PROBABILITIES, start=0.0).epoch_start(tiny.at(0), tiny.sweep(method, tiny.numbers)) == {}


def test_a_resumed_run_does_not_choose_again() -> None:
    method = by_probability(PROBABILITIES)
    method.epoch_start(tiny.at(4), tiny.sweep(method, tiny.numbers))
    resumed = make([tiny.table([1.0] * tiny.N)])
    resumed.load_state_dict(method.state_dict())
    assert resumed.epoch_start(tiny.at(4), tiny.sweep(method, tiny.numbers)) == {}
    assert torch.equal(resumed.kept, method.kept)


def test_a_class_that_the_network_does_not_know_yet_keeps_all_its_labels() -> None:
    """Of each class there are three labels; with four classes, one of them passing is enough, none is not."""
    p = [0.2 if int(label) == 2 else 0.9 if i < 4 else 0.3 for i, label in enumerate(tiny.Y)]
    method = by_probability(p)
    report = method.epoch_start(tiny.at(5), tiny.sweep(method, tiny.numbers))
    assert method.kept.tolist() == [float(i < 4 or int(label) == 2) for i, label in enumerate(tiny.Y)]
    assert report == {"kept": pytest.approx(6 / 12), "whole": 1.0}


def test_a_class_without_labels_is_no_trouble() -> None:
    task = tiny.task([tiny.table([0.1] * tiny.N)], y=tiny.Y.clamp(max=2))
    method = TruncatedGCE(TruncatedGCE.Config(), task)
    method.epoch_start(tiny.at(5), tiny.sweep(method, tiny.numbers))
    assert method.kept.isfinite().all()


def test_trust_ranks_kept_labels_above_the_others_and_by_probability_among_themselves() -> None:
    method = by_probability(PROBABILITIES)
    sweep = tiny.sweep(method, tiny.numbers)
    method.epoch_start(tiny.at(5), sweep)
    trust = method.trust(sweep)
    assert trust.tolist() == pytest.approx([(float(p > 0.5) + p) / 2 for p in PROBABILITIES], abs=1e-6)


def test_noisy_digits_are_learnt_better_than_by_cross_entropy() -> None:
    assert np.mean(accuracy("truncated_gce")) > np.mean(accuracy("ce")) + 0.04  # measured: 0.946 and 0.859
