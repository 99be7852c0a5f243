"""What is known of a run, and when it is decided."""

from __future__ import annotations

import pytest
import torch
from test_parts_noise_rate import spread_over

from rte.methods.base import Progress
from rte.parts.noise_rate import ENOUGH, UNTIL
from rte.recipes.policy import ASSUMED, LONG, SHORT, choose, matching_q, signal
from rte.recipes.tuner import Tuner


def tuner(images: int = 50_000, *, most: int = 0, eager: bool = True, wrong: float = 0.0, count: int = 0) -> Tuner:
    """Of ten classes, that has seen so many batches in which so large a share of labels was wrong."""
    made = Tuner(images, 10, most=most, eager=eager)
    made.noise.mean.fill_(wrong)
    made.noise.count.fill_(count)
    return made


def test_it_says_what_the_policy_says_of_the_noise_as_it_is_estimated_now() -> None:
    made = tuner(30_000, eager=False)
    made.noise = spread_over(3)
    expected = choose(made.noise.rate, even=False, epochs=20, per_epoch=1.0, images=30_000, classes=10, eager=False)
    assert made.now(Progress(5, 20)) == expected
    made.noise = spread_over(9)
    assert made.now(Progress(5, SHORT)).likelihood is False, "not eager"
    made.eager = True
    assert made.now(Progress(5, SHORT)).likelihood is True, "even"


@pytest.mark.parametrize(("others", "even"), [(9, True), (7, True), (6, False), (1, False)])
def test_wrong_labels_that_go_to_few_classes_are_not_even(others: int, even: bool) -> None:
    made = tuner()
    made.noise = spread_over(others)
    assert made.now(Progress(0, SHORT)).likelihood == even


def test_before_the_estimate_counts_nothing_is_known() -> None:
    made, t = tuner(wrong=0.8, count=ENOUGH - 1), Progress(1, 100)
    assert (made.now(t).q, made.now(t).rate) == (None, signal(ASSUMED, 10))
    made.noise.count.fill_(ENOUGH)
    assert (made.now(t).q, made.now(t).rate) == pytest.approx((matching_q(0.8, 10), signal(0.8, 10)))


def test_batches_are_looked_at_in_the_first_half_only() -> None:
    made = tuner()
    logits, y = torch.eye(10), (torch.arange(10) + 1) % 10
    for fraction, looks in ((0.0, 1), (UNTIL - 0.01, 2), (UNTIL, 2), (0.9, 2)):
        assert made.look(logits, y, Progress(0, 1, done=fraction)) == made.noise.rate == 1.0
        assert made.noise.count == looks


def test_the_stages_are_settled_once_and_only_by_an_estimate_that_counts() -> None:
    made = tuner(wrong=0.87, count=40)
    early, t = Progress(1, 136, step=390), Progress(10, 136, step=10 * 390)
    assert made.settle(early, early.step) == {}
    assert made.undecided
    made.noise.count.fill_(ENOUGH)
    assert made.settle(t, t.step) == {"noise": pytest.approx(0.87), "epochs": 136, "stages": 19}
    assert not made.undecided
    planned = choose(made.noise.rate, even=True, epochs=136, per_epoch=390, images=50_000, classes=10).stages
    assert made.stages.until[:19].tolist() == [stage.until for stage in planned]
    made.noise.mean.fill_(0.1)
    assert made.settle(t, t.step) == {}, "what is decided is decided"
    assert made.stages.until[0] == planned[0].until
    again = tuner()
    again.load_state_dict(made.state_dict())
    assert again.moment(t) == made.moment(t)
    assert again.settle(t, t.step) == {}


def test_little_noise_settles_it_too() -> None:
    made, t = tuner(count=80), Progress(2, 20, step=80)
    assert made.settle(t, t.step)["stages"] == 1
    made.noise.mean.fill_(0.87)
    assert made.settle(t, t.step) == {}
    assert made.moment(t) is t


@pytest.mark.parametrize(("most", "count"), [(0, 19), (1, 1), (3, 5)])
def test_a_limit_of_networks_is_kept(most: int, count: int) -> None:
    made, t = tuner(most=most, wrong=0.87, count=ENOUGH), Progress(10, 136, step=3900)
    assert made.settle(t, t.step)["stages"] == count


def test_a_run_whose_length_turns_out_otherwise_goes_by_what_it_was_thought_to_be() -> None:
    """A run of a given time foresees its number of epochs anew; what goes by it must not flicker."""
    made, t = tuner(wrong=0.4, count=ENOUGH), Progress(4, LONG, step=1600, done=0.1)
    made.settle(t, t.step)
    for epochs in (LONG - 9, LONG, LONG + 30):
        later = Progress(20, epochs, done=0.5)
        assert (made.moment(later).epochs, made.moment(later).fraction) == (LONG, 0.5)
        assert made.consistency(made.moment(later)) > 0


def test_consistency_comes_where_it_pays_by_the_noise_that_was_first_known() -> None:
    made, t = tuner(wrong=0.8, count=ENOUGH), Progress(5, 25, step=ENOUGH)
    assert made.consistency(t) == 0, "before it is settled, a run of 25 epochs is short"
    made.settle(t, t.step)
    left = signal(0.8, 10)
    assert made.consistency(t) == pytest.approx(left)
    assert made.consistency(Progress(20, 25)) == pytest.approx(signal(ASSUMED, 10)), "no weaker late in the run"
    made.noise.mean.fill_(0.3)
    assert made.consistency(t) == pytest.approx(signal(0.3, 10)), "its weight goes by the estimate of now"
    assert made.consistency(Progress(1, 25)) == 0, "too early"
    assert made.consistency(Progress(4, 19)) == 0, "too short"
