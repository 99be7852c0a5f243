"""JoCoR: the joint loss, who is chosen by it, and what is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.jocor import JointTraining

INDEX = [3, 7, 1, 10, 6, 2, 9]


def make(build: Any = tiny.linear, **cfg: Any) -> JointTraining:
    torch.manual_seed(0)
    return JointTraining(JointTraining.Config.model_validate(cfg), tiny.task(build))


def joint(one: oracles.Array, two: oracles.Array, y: list[int], weight: float) -> list[float]:
    found = []
    for p, q, label in zip(oracles.softmax(one), oracles.softmax(two), y, strict=True):
        task = -np.log(p[label]) - np.log(q[label])
        apart = oracles.kl(p.tolist(), q.tolist()) + oracles.kl(q.tolist(), p.tolist())
        found.append(float((1 - weight) * task + weight * apart))
    return found


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("epoch", "keep"), [(0, 7), (2, 5), (9, 3)])
def test_loss_is_the_mean_of_the_smallest_joint_losses(weight: float, epoch: int, keep: int) -> None:
    method, batch = make(noise_rate=0.6, ramp=0.4, agreement=weight), tiny.batch(INDEX)
    one, two = (tiny.array(net(batch.x)) for net in method.nets)
    expected = np.mean(sorted(joint(one, two, batch.y.tolist(), weight))[:keep])
    terms = method.loss(batch, tiny.at(epoch))
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert terms["kept"] == keep / len(INDEX)
    parts = (1 - weight) * tiny.number(terms["task"]) + weight * tiny.number(terms["disagreement"])
    assert parts == pytest.approx(expected, rel=1e-5)


def test_both_networks_learn_from_the_same_examples() -> None:
    one, two = tiny.table([0.1, 0.2] * 6), tiny.table([0.1, 3.0] * 6)
    method = make([one, two], noise_rate=0.5, ramp=0.1)
    method.step(tiny.batch(range(12), make=tiny.numbers), tiny.at(5), tiny.sgd(method))
    for net in (one, two):
        assert net.rows.grad is not None
        assert net.rows.grad.abs().sum(1).nonzero().squeeze(1).tolist() == list(range(0, 12, 2))


def test_disagreement_speaks_against_an_example_whose_losses_are_small() -> None:
    """Both believe the label of example 0 more than that of example 1, but not alike."""
    one, two = tiny.table([0.01, 1.0] * 6), tiny.table([1.9, 1.0] * 6)
    pair = tiny.batch([0, 1], make=tiny.numbers)
    chosen = []
    for weight in (0.0, 0.9):
        method = make([one, two], noise_rate=0.5, ramp=0.1, agreement=weight)
        method.zero_grad()
        torch.as_tensor(method.loss(pair, tiny.at(5))["loss"]).backward()  # type: ignore[no-untyped-call]
        assert one.rows.grad is not None
        chosen.append(int(one.rows.grad.abs().sum(1).argmax()))
    assert chosen == [0, 1]


def test_certain_networks_that_contradict_each_other_have_a_finite_loss_and_gradient() -> None:
    sure = [tiny.Table(200.0 * torch.eye(tiny.K)[(tiny.Y + k) % tiny.K]) for k in range(2)]
    method = make(sure)
    terms = method.step(tiny.batch(range(12), make=tiny.numbers), tiny.at(), tiny.sgd(method))
    assert np.isfinite(tiny.number(terms["loss"]))
    assert all(p.isfinite().all() for p in method.parameters())


def test_without_a_given_rate_it_goes_by_its_own_estimate() -> None:
    method = make()
    method.noise.estimate.mean.fill_(0.25)
    assert method.keep(tiny.at(5, 20)) == pytest.approx(0.75)
    assert make(noise_rate=0.5).keep(tiny.at(5, 20)) == 0.5
    assert method.keep(tiny.at(0, 20)) == 1.0


def test_the_prediction_is_the_mean_of_both_softmaxes() -> None:
    method, x = make(), tiny.images(range(6))
    one, two = (net(x).softmax(1) for net in method.nets)
    torch.testing.assert_close(method.predict(x).softmax(1), (one + two) / 2)


def test_it_learns_more_from_noisy_digits_than_cross_entropy() -> None:
    train = {"optimizer": "adam", "lr": {"kind": "cosine", "scale": 0.005, "phase": 0.5}}
    seeds = (0, 1)  # two networks take twice the time
    ours, theirs = (accuracy(name, seeds=seeds, train=train) for name in ("jocor", "ce"))
    assert np.mean(ours) > np.mean(theirs) + 0.03
