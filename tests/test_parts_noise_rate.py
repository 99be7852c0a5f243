"""The estimate of the noise while training."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from conftest import quick
from test_train_trainer import trainer

from rte.parts.noise_rate import ENOUGH, MEMORY, SETTLED, NoiseEstimate


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


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_finds_out_how_wrong_its_labels_are(seed: int) -> None:
    found = []
    for noise in ({"name": "none"}, {"name": "symmetric", "ratio": 0.4}):
        one = trainer(quick("auto", noise=noise, seed=seed, train={"epochs": 20, "batch": 64}))
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
