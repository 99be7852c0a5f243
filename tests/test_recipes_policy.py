"""What suits a run: the formulas of the policy, and each of its rules at its limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rte.recipes.policy import (
    ASSUMED,
    BEGIN,
    CONTRAST,
    FIRST,
    GENTLE,
    HIGHEST,
    LATE,
    LATER,
    LEAST,
    LESSON,
    LONG,
    MANY,
    MOST,
    SHORT,
    STEPS,
    TAUGHT,
    Choice,
    choose,
    divide,
    matching_q,
    signal,
)


def choice(noise: float | None = 0.3, **what: Any) -> Choice:
    """For many images of ten classes, in a short run with even noise, unless told otherwise."""
    usual: dict[str, Any] = {"even": True, "epochs": SHORT, "per_epoch": 390, "images": MANY, "classes": 10}
    return choose(noise, **{**usual, **what})


# ---- q


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


@pytest.mark.parametrize(
    ("even", "epochs", "wrong", "eager", "part"),
    [
        (False, SHORT, 0.3, True, GENTLE),
        (True, SHORT, 0.3, True, 1.0),  # evenly spread: the likelihood takes the place of L_q
        (False, SHORT + 1, 0.3, True, 1.0),
        (False, SHORT, 0.7, True, 1.0),
        (False, SHORT, 0.3, False, 1.0),
    ],
)
def test_q_is_lower_in_short_runs_whose_noise_is_not_even(
    even: bool, epochs: int, wrong: float, eager: bool, part: float
) -> None:
    found = choice(wrong, even=even, epochs=epochs, eager=eager)
    assert found.q == pytest.approx(part * matching_q(wrong, 10))


# ---- what noise leaves of the labels' gradient


def test_the_signal_is_the_expected_gradient_that_noise_leaves() -> None:
    assert signal(0.0, 10) == 1.0
    assert signal(0.4, 10) == pytest.approx(0.6 - 0.4 / 9)
    assert signal(0.25, 2) == pytest.approx(0.5)
    assert signal(0.8, 10) == pytest.approx(0.2 - 0.8 / 9)
    assert signal(0.9, 10) == signal(1.0, 10) == LEAST


@pytest.mark.parametrize("wrong", [0.0, 0.2, 0.6, 0.95])
def test_learning_rate_and_consistency_go_by_the_signal(wrong: float) -> None:
    found, usual = choice(wrong), signal(ASSUMED, 10)
    assert found.rate == found.early == signal(wrong, 10)
    assert found.late == max(signal(wrong, 10), usual), "once labels are memorised, no weaker than usual"
    assert found.taught_rate == signal(TAUGHT, 10)
    assert (found.consistency(LATE - 1e-9), found.consistency(LATE)) == (found.early, found.late)


def test_before_the_noise_is_known_some_is_assumed_and_nothing_else_decided() -> None:
    found = choice(None)
    assert found.q is None
    assert found.rate == found.early == found.late == signal(ASSUMED, 10)
    assert (found.likelihood, found.sampling, found.stretch) == (False, False, 1.0)
    assert len(found.stages) == 1


# ---- short runs


@pytest.mark.parametrize(
    ("wrong", "epochs", "likely"),
    [
        (0.4, 1, True),
        (0.4, SHORT, True),
        (0.4, SHORT + 1, False),
        (0.59, 10, True),
        (0.61, 10, False),
        (0.0, 10, True),
        (None, 10, False),
    ],
)
def test_short_runs_with_moderate_noise_use_the_likelihood(wrong: float | None, epochs: int, likely: bool) -> None:
    assert choice(wrong, epochs=epochs).likelihood == likely
    assert not choice(wrong, epochs=epochs, even=False).likelihood
    assert not choice(wrong, epochs=epochs, eager=False).likelihood


@pytest.mark.parametrize(
    ("images", "epochs", "drawn"),
    [
        (10_000, 6, True),
        (10_000, 9, False),
        (40_000, 13, True),
        (40_000, 14, False),
        (1_000_000, SHORT, True),
        (1_000_000, SHORT + 1, False),
    ],
)
def test_few_images_are_not_drawn_by_importance_for_long(images: int, epochs: int, drawn: bool) -> None:
    found = choice(images=images, epochs=epochs)
    assert found.sampling == drawn
    assert found.likelihood == (epochs <= SHORT), "the likelihood does not go by that"


# ---- strong views


@pytest.mark.parametrize(
    ("wrong", "stretch"), [(0.0, 1.0), (0.3, 1.0), (0.4, 1.0), (0.8, 5**0.5), (1.0, (50 / 9) ** 0.5)]
)
def test_the_more_noise_the_longer_a_run_effectively_is(wrong: float, stretch: float) -> None:
    assert choice(wrong).stretch == pytest.approx(stretch)


def test_strong_views_pay_in_runs_that_are_effectively_long_once_the_teacher_knows_something() -> None:
    usual, much = choice(0.4), choice(0.8)
    assert [usual.views(epochs, 0.5) for epochs in (LONG - 1, LONG)] == [False, True]
    needed = math.ceil((LONG - 0.5) / 5**0.5)
    assert [much.views(epochs, 0.5) for epochs in (needed - 1, needed)] == [False, True]
    assert [usual.views(LONG, fraction) for fraction in (BEGIN - 1e-9, BEGIN)] == [False, True]


# ---- stages


@pytest.mark.parametrize(
    ("wrong", "epochs", "per_epoch", "count"),
    [
        (0.0, 300, 390, 1),
        (0.47, 999, 390, 1),  # what is taken for 40 %, however long
        (0.65, 136, 390, 6),  # for 60 %, two hours
        (0.87, 9, 390, 1),  # for 80 %, five minutes
        (0.87, 20, 390, 1),  # ten
        (0.87, 41, 390, 3),  # half an hour
        (0.87, 136, 390, 10),  # two hours
        (0.87, 200, 39, 1),  # 5,000 images: no time for two
    ],
)
def test_how_many_networks_by_the_noise_and_the_time(wrong: float, epochs: int, per_epoch: int, count: int) -> None:
    left = signal(wrong, 10)
    stages = divide(left, epochs, per_epoch)
    assert choice(wrong, epochs=epochs, per_epoch=per_epoch).stages == stages
    assert [stage.taught for stage in stages] == [False] + [True, False] * (count - 1)
    until = [stage.until for stage in stages]
    assert until == sorted(until)
    assert until[-1] == 1.0
    if count == 1:
        return
    assert until[0] * epochs == pytest.approx(max(FIRST * left**1.5, STEPS / per_epoch))
    each = (1 - until[0]) / (count - 1)
    assert each * epochs >= LATER
    assert each * epochs * per_epoch >= STEPS
    expected = [until[0] + each * (k + part) for k in range(count - 1) for part in (LESSON, 1)]
    assert until[1:] == pytest.approx(expected)


@pytest.mark.parametrize(("most", "count"), [(1, 1), (2, 2), (3, 3), (MOST, 10)])
def test_no_more_networks_than_allowed(most: int, count: int) -> None:
    assert len(choice(0.87, epochs=136, most=most).stages) == 2 * count - 1
