"""Mixup as a method: one weight and one order for the batch, images and labels mixed alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.mixup import Mixup
from rte.parts import mixing

INDEX = [3, 11, 4, 6, 0, 8]


def make(build: Any = tiny.linear, **cfg: Any) -> Mixup:
    torch.manual_seed(0)
    return Mixup(Mixup.Config.model_validate(cfg), tiny.task(build))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0, 32.0])
def test_the_loss_is_the_mixture_of_the_cross_entropies_with_both_labels(alpha: float) -> None:
    method, batch = make(alpha=alpha), tiny.batch(INDEX)
    torch.manual_seed(7)
    weight, order = mixing.draw(len(INDEX), alpha)
    x, y = tiny.array(batch.x), batch.y.tolist()
    mixed = weight * x + (1 - weight) * x[order.numpy()]
    logits = tiny.array(method.predict(torch.tensor(mixed, dtype=torch.float32)))
    own = -oracles.log_likelihood(logits, y)
    other = -oracles.log_likelihood(logits, [y[int(b)] for b in order])
    torch.manual_seed(7)
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx((weight * own + (1 - weight) * other).mean(), rel=1e-5)
    assert terms["weight"] == weight
    assert not alpha or (len({*order.tolist()}) == len(INDEX) and not np.array_equal(order, range(len(INDEX))))


def test_a_large_alpha_mixes_half_and_half_and_none_leaves_images_alone() -> None:
    def weights(alpha: float) -> list[float]:
        torch.manual_seed(0)
        return [tiny.number(make(alpha=alpha).loss(tiny.batch(INDEX), tiny.at(k))["weight"]) for k in range(3)]

    assert weights(0.0) == [1.0] * 3
    torch.manual_seed(3)
    method = make(alpha=32.0)
    drawn = [tiny.number(method.loss(tiny.batch(INDEX), tiny.at())["weight"]) for _ in range(300)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.02)
    assert np.std(drawn) == pytest.approx((4 * (2 * 32 + 1)) ** -0.5, rel=0.2)  # of Beta(a, a)


def test_a_batch_of_one_is_mixed_with_itself() -> None:
    method, batch = make(alpha=1.0), tiny.batch([5])
    expected = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist()).mean()
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


def test_noisy_digits_are_learnt_no_worse_than_by_cross_entropy() -> None:
    assert no_worse(accuracy("mixup"), accuracy("ce"))
