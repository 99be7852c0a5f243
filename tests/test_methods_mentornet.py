"""MentorNet PD: the threshold, the three parts of the curriculum, and the examples left out at random."""

from __future__ import annotations

from typing import Any

import learning
import numpy as np
import oracles
import pytest
import tiny
import torch

from rte.methods.mentornet import MentorNet, sampled

LOSSES = [0.1, 2.0, 0.2, 2.1, 0.3, 2.2, 0.4, 2.3, 0.5, 2.4, 0.6, 2.5]
ALL: dict[str, Any] = {"dropout": 0.0, "early_dropout": 0.0, "noise_rate": 0.4}


def make(build: Any = tiny.linear, **cfg: Any) -> MentorNet:
    torch.manual_seed(0)
    return MentorNet(MentorNet.Config.model_validate({**ALL, **cfg}), tiny.task(build))


def learnt_from(net: tiny.Table) -> list[int]:
    grad = net.rows.grad
    assert grad is not None
    return grad.abs().sum(1).nonzero().squeeze(1).tolist()


def curriculum(loss: float, m: float, percent: float, gamma: float) -> float:
    """v of one example, percent in 0..100."""
    if percent < 19:
        return 1.0
    if percent < 90:
        return 1.0 if loss - m <= 0 else 0.0
    return min(1.0, max(0.0, 1.0 - (loss - m) / gamma))


@pytest.mark.parametrize("epoch", [0, 18, 19, 50, 89, 90, 99])
@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_loss_is_the_formula_over_several_steps(epoch: int, gamma: float) -> None:
    method, m = make(gamma=gamma, percentile=0.5), 0.0
    for step in range(3):
        batch = tiny.batch([3, 7, 1, 10, 6, 2, 9], make=lambda i, view, step=step: tiny.images(i, step))
        losses = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist())
        m = 0.5 * m + 0.5 * sorted(losses)[3]
        weights = [curriculum(loss, m, epoch, gamma) for loss in losses]
        terms = method.loss(batch, tiny.at(epoch, 100))
        assert tiny.number(terms["threshold"]) == pytest.approx(m, rel=1e-5)
        assert tiny.number(terms["weight"]) == pytest.approx(np.mean(weights), rel=1e-5, abs=1e-7)
        assert tiny.number(terms["loss"]) == pytest.approx(np.mean(weights * losses), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(("epoch", "learnt"), [(5, range(12)), (50, range(0, 12, 2)), (95, [0, 1, 2, 3, 4, 6, 8, 10])])
def test_each_part_of_the_curriculum_learns_from_its_own(epoch: int, learnt: Any) -> None:
    net = tiny.table(LOSSES)
    method = make([net], percentile=5 / 11, memory=0.0, gamma=1.55)  # m = 0.6
    terms = method.step(tiny.batch(range(12), make=tiny.numbers), tiny.at(epoch, 100), tiny.sgd(method, lr=0.0))
    assert tiny.number(terms["threshold"]) == pytest.approx(0.6, rel=1e-5)
    assert learnt_from(net) == list(learnt), "2.0 and 2.1 have a small weight in the end"


def test_weights_carry_no_gradient() -> None:
    method, batch = make(percentile=0.5, memory=0.0), tiny.batch([4, 6, 10, 3])
    torch.as_tensor(method.loss(batch, tiny.at(95, 100))["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.net[1].bias
    free = tiny.array(method.predict(batch.x) - bias)
    losses = -oracles.log_likelihood(free + tiny.array(bias), batch.y.tolist())
    v = [curriculum(loss, float(method.threshold.m), 95, 1.0) for loss in losses]
    assert 0 < min(v) < 1

    def objective(b: oracles.Array) -> float:
        return float(np.mean(v * -oracles.log_likelihood(free + b, batch.y.tolist())))

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-5)


@pytest.mark.parametrize(
    ("n", "rate", "kept"), [(128, 0.5, 64), (128, 0.05, 121), (7, 0.5, 3), (1, 0.5, 1), (5, 0.0, 5)]
)
def test_so_many_examples_are_drawn(n: int, rate: float, kept: int) -> None:
    torch.manual_seed(0)
    drawn = torch.stack([sampled(torch.zeros(n), rate) for _ in range(20)])
    assert (drawn.sum(1) == kept).all()
    assert set(drawn.unique().tolist()) <= {0.0, 1.0}
    assert kept == n or len(drawn.unique(dim=0)) > 1 or n == 1


def test_half_of_a_batch_is_left_out_in_the_first_part_of_the_run() -> None:
    method, batch = make(early_dropout=0.5, dropout=0.25), tiny.batch(range(12))
    weights = [tiny.number(method.loss(batch, tiny.at(epoch, 100))["weight"]) for epoch in (0, 16, 17, 18)]
    assert weights == pytest.approx([0.5, 0.5, 0.75, 0.75])


@pytest.mark.parametrize(("noise_rate", "percentile", "p"), [(0.2, None, 0.75), (0.8, None, 0.5), (0.8, 0.9, 0.9)])
def test_the_quantile_is_the_authors_for_the_noise(noise_rate: float, percentile: float | None, p: float) -> None:
    method = make([tiny.table(LOSSES)], noise_rate=noise_rate, percentile=percentile, memory=0.0)
    method.loss(tiny.batch(range(12), make=tiny.numbers), tiny.at(50, 100))
    place = int(np.rint(p * 11))
    assert float(method.threshold.m) == pytest.approx(sorted(LOSSES)[place], rel=1e-5)


def test_the_estimate_serves_where_no_noise_rate_is_given() -> None:
    method = make(noise_rate=None)
    for _ in range(20):
        terms = method.loss(tiny.batch(range(12)), tiny.at(4))
    assert terms["noise"] == method.noise.at(tiny.at(4)) > 0.0


def test_the_threshold_is_in_the_checkpoint_and_averaged_over_processes() -> None:
    method = make()
    method.loss(tiny.batch(range(12)), tiny.at(4))
    assert float(method.state_dict()["threshold.m"]) > 0
    assert method.threshold in list(method.running())


def test_it_memorises_less_than_cross_entropy() -> None:
    ours, theirs = (learning.accuracy(name, **learning.STILL) for name in ("mentornet", "ce"))
    assert min(ours) > max(theirs), "MentorNet 80 % against 67 % when this was written"
