"""The estimate of the noise while training, and the rate that methods go by."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tiny
import torch
from conftest import quick
from test_train_trainer import trainer
from torch import nn

from rte.methods.auto import SelfTuning
from rte.methods.co_teaching import CoTeaching
from rte.parts.noise_rate import ENOUGH, HIGHEST, MEMORY, RECENT, SETTLED, UNTIL, NoiseEstimate, NoiseRate


def test_only_the_most_confident_predictions_count() -> None:
    estimate = NoiseEstimate(3)
    logits = torch.zeros(20, 3)
    logits[:, 1] = torch.linspace(0, 5, 20)  # all say class 1, the last two most loudly
    y = torch.zeros(20, dtype=torch.int64)
    y[-2] = 1
    estimate.update(logits, y)
    assert estimate.rate == 0.5


def test_the_mean_is_plain_at_first_and_forgets_later() -> None:
    estimate, seen = NoiseEstimate(2), []
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([[9.0, 0.0]])
    expected = 0.0
    for step in range(1, 301):
        y = torch.randint(2, (1,), generator=generator)
        seen.append(int(y))
        estimate.update(logits, y)
        expected += (int(y) - expected) * max(1 / step, 1 - MEMORY)
        if step == 50:
            assert estimate.rate == pytest.approx(np.mean(seen), abs=1e-6)
    assert estimate.rate == pytest.approx(expected, abs=1e-5)
    assert not math.isclose(estimate.rate, float(np.mean(seen)))


def test_batches_of_an_untrained_network_may_be_forgotten_sooner() -> None:
    estimate, expected = NoiseEstimate(2, recent=RECENT), 0.0
    logits, labels = torch.tensor([[9.0, 0.0]]), [1] * 10 + [0] * 30 + [1] * 600
    for step, y in enumerate(labels, 1):
        estimate.update(logits, torch.tensor([y]))
        expected += (y - expected) * min(1.0, max(RECENT / step, 1 - MEMORY))
        assert estimate.rate == pytest.approx(expected, abs=1e-5)
        if step == 40:
            assert estimate.rate < 0.01


def test_the_estimate_is_part_of_the_state() -> None:
    estimate, other = NoiseEstimate(4), NoiseEstimate(4)
    estimate.update(torch.eye(4), torch.tensor([0, 1, 1, 1]))
    other.load_state_dict(estimate.state_dict())
    for each in (estimate, other):
        each.update(torch.eye(4) * 3, torch.tensor([1, 1, 1, 1]))
    assert estimate.rate == other.rate
    assert not list(estimate.parameters())


def test_it_is_known_after_some_steps_or_in_short_runs_after_a_part_of_them() -> None:
    estimate = NoiseEstimate(2)
    assert (estimate.known(SETTLED - 1e-9), estimate.known(SETTLED)) == (False, True)
    estimate.count.fill_(ENOUGH - 1)
    assert not estimate.known(0.0)
    estimate.count.fill_(ENOUGH)
    assert estimate.known(0.0)


def test_a_run_finds_out_how_wrong_its_labels_are() -> None:
    found = []
    for noise in ({"name": "none"}, {"name": "symmetric", "ratio": 0.4}):
        one = trainer(quick("auto", noise=noise, train={"epochs": 20, "batch": 64}))
        one.fit()
        found.append(one.method.tuner.noise.rate)  # type: ignore[union-attr]
    assert found == pytest.approx([0.0, 0.4], abs=0.13)  # too high, if anything: see the class


# ---- to how many classes wrong labels go


def spread_over(others: int, wrong: float = 0.3) -> NoiseEstimate:
    """A settled estimate of labels whose wrong ones go to so many classes each."""
    noise = NoiseEstimate(10)
    noise.mean.fill_(wrong)
    noise.count.fill_(ENOUGH)
    for k in range(10):
        noise.contradictions[k, [(k + 1 + j) % 10 for j in range(others)]] = 1000.0
    return noise


def test_the_spread_counts_the_classes_that_wrong_labels_go_to() -> None:
    for others in (9, 7, 6, 1):
        assert spread_over(others).spread == pytest.approx(others, rel=0.01)
    assert NoiseEstimate(10).spread == 9.0, "nothing speaks against it yet"


def test_the_spread_is_that_of_the_labels_whatever_their_number() -> None:
    random, found = np.random.default_rng(0), []
    for number in (200, 20_000):
        noise = NoiseEstimate(10)
        a = random.integers(0, 10, number)
        b = (a + random.choice([1, 2, 5], number)) % 10  # to three classes
        noise.contradictions.index_put_((torch.tensor(a), torch.tensor(b)), torch.ones(number), accumulate=True)
        found.append(noise.spread)
    assert found == pytest.approx([3.0, 3.0], rel=0.15), "chance makes few labels look no more alike than many"


def test_contradictions_are_counted_by_predicted_class_and_label() -> None:
    noise = NoiseEstimate(3)
    logits, y = torch.zeros(20, 3), torch.zeros(20, dtype=torch.int64)
    logits[:, 1] = torch.linspace(0, 5, 20)  # all say class 1, the last two most loudly
    y[-2], y[-1] = 1, 2
    noise.update(logits, y)
    assert noise.contradictions.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]


# ---- the rate that methods go by


def test_what_the_user_says_counts_at_all_times() -> None:
    noise = NoiseRate(10)
    noise.estimate.mean.fill_(0.7)
    for epoch in (0, 5, 9):
        assert noise.at(tiny.at(epoch), 0.3) == 0.3
        assert noise.at(tiny.at(epoch), 0.0) == 0.0


def test_the_estimate_counts_once_it_is_known_and_leaves_something_to_learn() -> None:
    noise = NoiseRate(10)
    noise.estimate.mean.fill_(0.3)
    assert noise.at(tiny.at(0)) == 0.0
    assert noise.at(tiny.at(1)) == pytest.approx(0.3)
    noise.estimate.mean.fill_(1.0)
    assert noise.at(tiny.at(1)) == pytest.approx(HIGHEST * 0.9)


def test_labels_are_looked_at_until_they_may_be_memorised() -> None:
    noise = NoiseRate(2)
    logits, y = torch.tensor([[9.0, 0.0]]), torch.tensor([1])
    noise.update(logits, y, tiny.at(9, done=UNTIL - 0.01))
    assert noise.estimate.count == 1
    noise.update(logits, y, tiny.at(0, done=UNTIL))
    assert noise.estimate.count == 1


def test_a_method_that_has_it_shares_it_among_processes() -> None:
    method = CoTeaching(CoTeaching.Config(), tiny.task(tiny.normed))
    shared = list(method.running())
    assert sum(isinstance(module, NoiseEstimate) for module in shared) == 1
    assert sum(isinstance(module, nn.BatchNorm1d) for module in shared) == 2


@pytest.mark.parametrize(("ratio", "epochs"), [(0.0, 4), (0.4, 4), (0.4, 10)])
def test_a_method_finds_out_how_wrong_the_labels_are(ratio: float, epochs: int) -> None:
    noise = {"name": "symmetric", "ratio": ratio}
    one = trainer(quick("co_teaching", noise=noise, train={"epochs": epochs, "batch": 64}))
    one.fit()
    # too high if anything, most so in a short run: right labels contradict a network that is not yet right
    assert ratio - 0.08 < one.method.noise.at(tiny.at(9)) < ratio + 0.5 / epochs


def test_the_estimate_of_auto_is_a_plain_mean_at_first() -> None:
    """What its policy was measured with."""
    method = SelfTuning(SelfTuning.Config(), tiny.task())
    assert method.tuner.noise.recent == 1.0
    assert [m for m in method.running() if isinstance(m, NoiseEstimate)] == [method.tuner.noise]
