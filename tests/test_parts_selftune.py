"""The estimate of the noise while training, and the q that is made of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick
from hypothesis import given
from hypothesis import strategies as st
from test_train_trainer import same, stopped_and_resumed, trainer

from rte.config import RunConfig
from rte.methods.base import Progress
from rte.parts.selftune import (
    ASSUMED,
    CONTRAST,
    ENOUGH,
    GENTLE,
    HIGHEST,
    LEAST,
    MEMORY,
    SHORT,
    NoiseEstimate,
    felt_length,
    matching_q,
    signal,
)
from rte.run.budget import Meter


@pytest.mark.parametrize("wrong", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("classes", [4, 10])
def test_q_gives_the_minimum_of_the_expected_loss_its_contrast(wrong: float, classes: int) -> None:
    q = matching_q(wrong, classes)
    assert 0.0 < q < HIGHEST
    frequency = np.full(classes, wrong / (classes - 1))
    frequency[0] = 1 - wrong

    def loss(right: float) -> float:
        p = np.full(classes, (1 - right) / (classes - 1))
        p[0] = right
        return float((frequency * (1 - p**q) / q).sum())

    odds = np.geomspace(1.01, 1e7, 4000)  # of the right class against one other
    best = odds[np.argmin([loss(o / (o + classes - 1)) for o in odds])]
    assert best == pytest.approx(CONTRAST, rel=0.05)


def test_q_at_the_ends() -> None:
    assert matching_q(0.0, 10) == 0.0
    assert matching_q(1e-9, 10) == 0.0  # rarer than the contrast
    assert matching_q(0.9, 10) == matching_q(0.95, 10) == matching_q(1.0, 10) == HIGHEST
    assert matching_q(0.4, 10) == pytest.approx(0.675, abs=0.001)
    assert matching_q(0.8, 10) == pytest.approx(0.899, abs=0.001)


@given(a=st.floats(0, 1), b=st.floats(0, 1), classes=st.integers(2, 1000))
def test_q_rises_with_the_noise(a: float, b: float, classes: int) -> None:
    low, high = sorted((matching_q(a, classes), matching_q(b, classes)))
    assert 0.0 <= low <= high <= HIGHEST
    assert (matching_q(min(a, b), classes), matching_q(max(a, b), classes)) == (low, high)


def test_the_signal_is_the_expected_gradient_that_noise_leaves() -> None:
    assert signal(0.0, 10) == 1.0
    assert signal(0.4, 10) == pytest.approx(0.6 - 0.4 / 9)
    assert signal(0.25, 2) == pytest.approx(0.5)
    assert signal(0.8, 10) == pytest.approx(0.2 - 0.8 / 9)
    assert signal(0.9, 10) == signal(1.0, 10) == LEAST


def test_only_the_most_confident_predictions_count() -> None:
    estimate = NoiseEstimate(3)
    logits = torch.zeros(20, 3)
    logits[:, 1] = torch.linspace(0, 5, 20)  # all say class 1, the last two most loudly
    y = torch.zeros(20, dtype=torch.int64)
    y[-2] = 1
    estimate.update(logits, y)
    assert estimate.share == 0.5


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
            assert estimate.share == pytest.approx(np.mean(seen), abs=1e-6)
    assert estimate.share == pytest.approx(expected, abs=1e-5)
    assert not math.isclose(estimate.share, float(np.mean(seen)))


def test_the_estimate_is_part_of_the_state() -> None:
    estimate, other = NoiseEstimate(4), NoiseEstimate(4)
    estimate.update(torch.eye(4), torch.tensor([0, 1, 1, 1]))
    other.load_state_dict(estimate.state_dict())
    for each in (estimate, other):
        each.update(torch.eye(4) * 3, torch.tensor([1, 1, 1, 1]))
    assert estimate.share == other.share
    assert not list(estimate.parameters())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_finds_out_how_wrong_its_labels_are(seed: int) -> None:
    plain = {"auto": True, "q": 0.7, "jsd_weight": 0.0, "ecr_weight": 0.0}
    found = []
    for noise in ({"name": "none"}, {"name": "symmetric", "ratio": 0.4}):
        one = trainer(quick("rte", noise=noise, seed=seed, method=plain, train={"epochs": 20, "batch": 64}))
        one.fit()
        assert isinstance(one.method.noise, NoiseEstimate)
        found.append(one.method.noise.share)
    assert found == pytest.approx([0.0, 0.4], abs=0.13)  # too high, if anything: see the class


# ---- how long a run is felt to be


@pytest.mark.parametrize(
    ("wrong", "length"), [(0.0, 1.0), (0.3, 1.0), (0.4, 1.0), (0.8, 5**0.5), (1.0, (50 / 9) ** 0.5)]
)
def test_a_run_is_felt_to_be_longer_the_more_noise_there_is(wrong: float, length: float) -> None:
    assert felt_length(wrong, 10) == pytest.approx(length)


def test_the_length_is_settled_once_and_only_by_an_estimate_that_has_seen_the_run() -> None:
    noise = NoiseEstimate(10)
    noise.mean.fill_(0.8)
    noise.count.fill_(40)
    t, early = Progress(2, 20, step=80, steps=800), Progress(1, 20, step=40, steps=800)
    assert noise.felt(t).epochs == 20
    noise.settle(early, early.step)
    assert noise.felt(t).epochs == 20, "too early"
    assert noise.settle(t, t.step) == {}
    assert noise.felt(t).epochs == 20, "of a run that was not seen"
    noise.count.fill_(80)
    decided = noise.settle(t, t.step)
    assert decided == {
        "noise": pytest.approx(0.8),
        "felt_length": pytest.approx(5**0.5),
        "generations": 1.0,
        "first": 1.0,
    }
    assert (noise.felt(t).epochs, noise.felt(t).epoch, noise.felt(t).fraction) == (45, 2, 0.1)
    noise.mean.fill_(0.4)
    assert noise.settle(t, t.step) == {}
    assert noise.felt(t).epochs == 45, "what is decided is decided"
    again = NoiseEstimate(10)
    again.load_state_dict(noise.state_dict())
    assert again.felt(t).epochs == 45


@pytest.mark.parametrize(
    ("wrong", "epochs", "count", "eager"),
    [
        (0.4, 10, 400, True),
        (0.4, SHORT, 400, True),
        (0.4, SHORT + 1, 400, False),
        (0.59, 10, 400, True),
        (0.61, 10, 400, False),
        (0.0, 10, 400, True),
        (0.4, 10, 20, False),
    ],
)
def test_labels_are_taken_at_their_word_in_short_runs_with_moderate_noise(
    wrong: float, epochs: int, count: int, eager: bool
) -> None:
    noise = NoiseEstimate(10)
    noise.mean.fill_(wrong)
    noise.count.fill_(count)
    assert noise.eager(Progress(0, epochs, step=20, steps=4000)) == eager


def spread_over(others: int, wrong: float = 0.3) -> NoiseEstimate:
    """A settled estimate of labels whose wrong ones go to so many classes each."""
    noise = NoiseEstimate(10)
    noise.mean.fill_(wrong)
    noise.count.fill_(ENOUGH)
    for k in range(10):
        noise.contradictions[k, [(k + 1 + j) % 10 for j in range(others)]] = 1000.0
    return noise


def test_wrong_labels_that_go_to_few_classes_are_not_even() -> None:
    for others, even in ((9, True), (7, True), (6, False), (1, False)):
        noise = spread_over(others)
        assert noise.spread == pytest.approx(others, rel=0.01)
        assert noise.even == even
    noise.contradictions.zero_()
    assert (noise.spread, noise.even) == (9.0, True), "nothing speaks against it yet"


@pytest.mark.parametrize(
    ("others", "epochs", "likely"), [(9, SHORT, True), (9, SHORT + 1, False), (3, SHORT, False), (3, 1, False)]
)
def test_examples_are_chosen_by_their_pull_only_where_wrong_labels_are_not_alike(
    others: int, epochs: int, likely: bool
) -> None:
    noise, t = spread_over(others), Progress(0, epochs, step=20, steps=4000)
    assert noise.likely(t) == noise.choosy(t) == likely


@pytest.mark.parametrize(
    ("images", "epochs", "choosy"),
    [
        (10_000, 6, True),
        (10_000, 9, False),
        (40_000, 13, True),
        (40_000, 14, False),
        (1_000_000, SHORT, True),
        (1_000_000, SHORT + 1, False),
    ],
)
def test_few_images_are_not_chosen_by_their_pull_for_long(images: int, epochs: int, choosy: bool) -> None:
    noise, t = spread_over(9), Progress(0, epochs, step=20, steps=4000)
    noise.images = images
    assert noise.choosy(t) == choosy
    assert noise.likely(t) == (epochs <= SHORT), "the likelihood does not go by that"


@pytest.mark.parametrize(
    ("others", "epochs", "wrong", "gently", "part"),
    [
        (3, SHORT, 0.3, True, GENTLE),
        (9, SHORT, 0.3, True, 1.0),  # evenly spread: the likelihood takes the place of L_q
        (3, SHORT + 1, 0.3, True, 1.0),
        (3, SHORT, 0.7, True, 1.0),
        (3, SHORT, 0.3, False, 1.0),
    ],
)
def test_q_is_lower_where_labels_are_taken_at_their_word_and_wrong_ones_are_alike(
    others: int, epochs: int, wrong: float, gently: bool, part: float
) -> None:
    t = Progress(0, epochs, step=20, steps=4000)
    expected = part * matching_q(wrong, 10)
    assert spread_over(others, wrong).q(t, 0.7, gently=gently) == pytest.approx(expected, rel=1e-6)


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


def test_little_noise_settles_it_too() -> None:
    noise, t = NoiseEstimate(10), Progress(2, 20, step=80, steps=800)
    noise.count.fill_(80)
    noise.settle(t, t.step)
    noise.mean.fill_(0.8)
    noise.settle(t, t.step)
    assert noise.felt(t).epochs == 20


def test_a_long_run_goes_by_the_estimate_before_its_first_tenth_is_over() -> None:
    noise, t = NoiseEstimate(10), Progress(1, 100, step=ENOUGH, steps=100 * ENOUGH)
    noise.mean.fill_(0.8)
    noise.count.fill_(ENOUGH - 1)
    assert (noise.q(t, 0.7), noise.pace(t)) == (0.7, signal(ASSUMED, 10))
    assert noise.settle(t, t.step) == {}
    noise.count.fill_(ENOUGH)
    assert (noise.q(t, 0.7), noise.pace(t)) == pytest.approx((matching_q(0.8, 10), signal(0.8, 10)))
    decided = {"noise": 0.8, "felt_length": 5**0.5, "generations": 7.0, "first": 400 / 27 / 100}
    assert noise.settle(t, t.step) == pytest.approx(decided), "some eighty epochs are left for others"


LATE = {"kind": "steps", "values": [0.0, 1.0], "fractions": [0.0, 0.1], "least": 5}
SOLO = {"auto": True, "jsd_weight": LATE, "ecr_weight": LATE, "views": 1, "jsd_views": 1, "task_view": "strong"}


def noisy_run(ratio: float) -> RunConfig:
    """15 steps in epochs of five; with much noise as long as ten epochs of little, which have views."""
    return quick("rte", method=SOLO, noise={"name": "symmetric", "ratio": ratio}, train={"steps": 15, "epochs": 3})


class Plans:
    def __init__(self) -> None:
        self.strong: list[bool] = []

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.strong.append("ecr" in terms)

    def epoch(self, epoch: int, scores: Any) -> None: ...


@pytest.mark.parametrize("stop", [4, 5, 8])
def test_a_run_gets_its_views_by_the_noise_it_finds_and_resumes_with_them(stop: int) -> None:
    straight, seen = trainer(noisy_run(0.85)), Plans()
    straight.observer = seen
    straight.fit()
    assert seen.strong == [False] * 5 + [True] * 8, "of ten steps, at 4/3 each, eight are left"
    resumed = stopped_and_resumed(noisy_run(0.85), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


def test_a_run_that_is_only_timed_decides_nothing() -> None:
    made = trainer(noisy_run(0.85))
    meter = Meter(made)
    for _ in range(3):
        meter.forget()
        meter.seconds(15)
    assert {views for views, _ in meter._times} == {1}, "of the weak view alone"
