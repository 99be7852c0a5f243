"""The plain losses, and the moving average they may report."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import STILL, accuracy

from rte.methods.base import Method
from rte.methods.ce import CrossEntropy
from rte.methods.gce import GeneralisedCrossEntropy
from rte.parts.schedules import Linear

INDEX = [3, 11, 4, 6]


def make(cls: type[Method], **cfg: object) -> Method:
    torch.manual_seed(0)
    return cls(cls.Config.model_validate(cfg), tiny.task())


def test_cross_entropy_is_the_mean_negative_log_likelihood() -> None:
    method, batch = make(CrossEntropy), tiny.batch(INDEX)
    expected = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist()).mean()
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("q", [0.0, 0.3, 0.7, 1.0])
def test_generalised_cross_entropy_is_the_formula(q: float) -> None:
    method, batch = make(GeneralisedCrossEntropy, q=q), tiny.batch(INDEX)
    expected = oracles.gce(tiny.array(method.predict(batch.x)), batch.y.tolist(), q).mean()
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert terms["q"] == q


def test_q_follows_its_schedule() -> None:
    method, batch = make(GeneralisedCrossEntropy, q=Linear(start=0, end=1)), tiny.batch(INDEX)
    logits = tiny.array(method.predict(batch.x))
    for epoch in (0, 4, 10):
        expected = oracles.gce(logits, batch.y.tolist(), epoch / 10).mean()
        assert tiny.number(method.loss(batch, tiny.at(epoch))["loss"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("cls", [CrossEntropy, GeneralisedCrossEntropy])
def test_with_a_decay_the_moving_average_is_reported(cls: type[Method]) -> None:
    method, x, t = make(cls, decay=0.5), tiny.images(INDEX), tiny.at()
    first = method.predict(x)
    method.step(tiny.batch(INDEX), t, tiny.sgd(method, lr=1.0))
    assert torch.equal(method.predict(x), first)
    method.after_step(t)
    student = method.networks()["student"](x)
    torch.testing.assert_close(method.predict(x), (first + student) / 2)  # linear network: logits average like weights
    assert not torch.allclose(student, first, atol=1e-2)


@pytest.mark.parametrize("cls", [CrossEntropy, GeneralisedCrossEntropy])
def test_without_a_decay_there_is_one_network(cls: type[Method]) -> None:
    method, x, t = make(cls), tiny.images(INDEX), tiny.at()
    first = method.predict(x)
    method.step(tiny.batch(INDEX), t, tiny.sgd(method, lr=1.0))
    method.after_step(t)
    assert method.networks() == {}
    assert not torch.allclose(method.predict(x), first, atol=1e-2)


def test_gce_keeps_more_of_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("gce", **STILL)) > np.mean(accuracy("ce", **STILL)) + 0.05  # measured: 0.781 and 0.667
