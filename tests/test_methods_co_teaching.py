"""Co-teaching: who learns from whom, how much is left out, and what is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.co_teaching import CoTeaching

FIRST = [0.1, 2.0, 0.2, 2.1, 0.3, 2.2, 0.4, 2.3, 0.5, 2.4, 0.6, 2.5]  # even examples are easy
SECOND = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5]  # the first six are easy


def make(build: Any = tiny.linear, **cfg: Any) -> CoTeaching:
    torch.manual_seed(0)
    return CoTeaching(CoTeaching.Config.model_validate(cfg), tiny.task(build))


def learnt_from(net: tiny.Table) -> list[int]:
    grad = net.rows.grad
    assert grad is not None
    return grad.abs().sum(1).nonzero().squeeze(1).tolist()


def test_each_network_learns_what_the_other_finds_easy() -> None:
    one, two = tiny.table(FIRST), tiny.table(SECOND)
    method = make([one, two], noise_rate=0.5, ramp=0.1)
    terms = method.step(tiny.batch(range(12), make=tiny.numbers), tiny.at(5), tiny.sgd(method))
    assert learnt_from(one) == [0, 1, 2, 3, 4, 5]
    assert learnt_from(two) == [0, 2, 4, 6, 8, 10]
    assert tiny.number(terms["first"]) == pytest.approx(np.mean(FIRST[:6]), rel=1e-5)
    assert tiny.number(terms["second"]) == pytest.approx(np.mean(SECOND[::2]), rel=1e-5)
    assert terms["kept"] == 0.5


def test_the_choice_follows_the_examples_through_a_shuffled_batch() -> None:
    one, two = tiny.table(FIRST), tiny.table(SECOND)
    method = make([one, two], noise_rate=0.5, ramp=0.1)
    method.step(tiny.batch([11, 3, 8, 0, 6, 1], make=tiny.numbers), tiny.at(5), tiny.sgd(method))
    assert learnt_from(one) == [0, 1, 3]
    assert learnt_from(two) == [0, 6, 8]


@pytest.mark.parametrize(("epoch", "keep"), [(0, 7), (2, 5), (9, 3)])
def test_loss_is_the_formula(epoch: int, keep: int) -> None:
    method, batch = make(noise_rate=0.6, ramp=0.4), tiny.batch([3, 7, 1, 10, 6, 2, 9])
    one, two = (tiny.array(net(batch.x)) for net in method.nets)
    assert not np.allclose(one, two)
    expected = oracles.co_teaching_objective(one, two, batch.y.tolist(), keep)
    assert tiny.number(method.loss(batch, tiny.at(epoch))["loss"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("exponent", "shares"),
    [(1.0, [1.0, 0.96, 0.8, 0.6, 0.6]), (2.0, [1.0, 0.996, 0.9, 0.6, 0.6]), (0.5, [1.0, 1 - 0.4 * 0.1**0.5])],
)
def test_the_share_left_out_rises_to_the_noise_rate(exponent: float, shares: list[float]) -> None:
    method = make(noise_rate=0.4, ramp=0.2, exponent=exponent)
    epochs = [0, 1, 5, 10, 30]
    assert [method.keep(tiny.at(epoch, 50)) for epoch in epochs[: len(shares)]] == pytest.approx(shares)


@pytest.mark.parametrize("epochs", [1, 4, 200])
def test_the_ramp_is_a_share_of_the_run_but_takes_an_epoch_at_least(epochs: int) -> None:
    method = make(noise_rate=0.4)
    length = max(1, round(0.05 * epochs))
    assert method.keep(tiny.at(0, epochs)) == 1.0
    assert method.keep(tiny.at(length - 1, epochs, j=5, J=10)) == pytest.approx(1 - 0.4 * (length - 0.5) / length)
    assert method.keep(tiny.at(length, epochs)) == pytest.approx(0.6)


def test_without_a_given_rate_it_goes_by_its_own_estimate() -> None:
    method = make([tiny.table([0.01] * tiny.N), tiny.table([0.01] * tiny.N)])
    wrong = torch.where(torch.arange(tiny.N) % 3 == 0, (tiny.Y + 1) % tiny.K, tiny.Y)
    sure = tiny.batch(range(12), make=tiny.numbers, y=wrong)
    assert tiny.number(method.loss(sure, tiny.at(0, 20))["kept"]) == 1.0, "nothing is known yet"
    method.noise.estimate.mean.fill_(0.25)
    assert method.keep(tiny.at(5, 20)) == pytest.approx(0.75)
    method.cfg = CoTeaching.Config(noise_rate=0.5)  # as population based training does
    assert method.keep(tiny.at(5, 20)) == 0.5


def test_it_learns_more_from_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("co_teaching")) > np.mean(accuracy("ce")) + 0.02


@pytest.mark.parametrize(("noise_rate", "size", "kept"), [(0.9, 10, 1), (0.99, 4, 1), (0.45, 128, 70), (0.0, 5, 5)])
def test_whole_examples_are_kept_and_never_none(noise_rate: float, size: int, kept: int) -> None:
    method = make(noise_rate=noise_rate, ramp=0.1)
    i = [k % tiny.N for k in range(size)]
    terms = method.loss(tiny.batch(i), tiny.at(3))
    assert terms["kept"] == kept / size
    assert np.isfinite(tiny.number(terms["loss"]))


def test_a_joint_update_is_two_separate_ones() -> None:
    """The weights of one network do not feel the other's loss."""
    method, batch = make(noise_rate=0.5, ramp=0.1), tiny.batch([3, 7, 1, 10])
    terms = method.loss(batch, tiny.at(5))
    ours, theirs = (list(net.parameters()) for net in method.nets)
    alone = torch.autograd.grad(torch.as_tensor(terms["first"]), ours, retain_graph=True)
    joint = torch.autograd.grad(torch.as_tensor(terms["loss"]), ours, retain_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(alone, joint, strict=True))
    crossed = torch.autograd.grad(torch.as_tensor(terms["first"]), theirs, allow_unused=True)
    assert crossed == (None,) * len(theirs)


def test_the_prediction_is_the_mean_of_both_softmaxes() -> None:
    method, x = make(), tiny.images(range(6))
    one, two = (net(x).softmax(1) for net in method.nets)
    torch.testing.assert_close(method.predict(x).softmax(1), (one + two) / 2)
    torch.testing.assert_close(method.predict(x).exp().sum(1), torch.ones(6))
    assert torch.equal(method.networks()["first"](x), method.nets[0](x))
    assert torch.equal(method.networks()["second"](x), method.nets[1](x))


def test_a_prediction_of_certain_networks_stays_finite() -> None:
    certain = [tiny.Table(torch.full((tiny.N, tiny.K), -300.0).scatter(1, tiny.Y[:, None], 300.0)) for _ in range(2)]
    assert make(certain).predict(tiny.numbers(range(3))).isfinite().all()
