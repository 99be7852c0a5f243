"""Runs of so many epochs or steps: how far they have got, when they end, and when they are evaluated."""

from __future__ import annotations

import pytest

from rte.train.timeline import BySteps, Place

J = 50
"""Steps of an epoch."""


def test_a_run_ends_after_its_epochs_or_its_steps_if_those_are_fewer() -> None:
    plain, short, long = BySteps(3, None, 1), BySteps(3, 70, 1), BySteps(3, 1000, 1)
    assert [plain.over(Place(epoch, 0, J, epoch * J)) for epoch in (0, 2, 3)] == [False, False, True]
    assert [short.over(Place(1, j, J, J + j)) for j in (19, 20)] == [False, True]
    assert [long.over(Place(epoch, 0, J, epoch * J)) for epoch in (2, 3)] == [False, True]


@pytest.mark.parametrize(("step", "done"), [(0, 0.0), (35, 0.5), (70, 1.0), (90, 1.0)])
def test_with_steps_the_share_that_lies_behind_is_theirs(step: int, done: float) -> None:
    assert BySteps(3, 70, 1).where(Place(step // J, step % J, J, step)) == (3, done)


def test_without_steps_it_is_a_matter_of_epochs() -> None:
    assert BySteps(3, None, 1).where(Place(1, 5, J, 55)) == (3, None)


def test_it_is_evaluated_every_so_many_epochs() -> None:
    timeline = BySteps(9, None, 3)
    assert [epoch for epoch in range(1, 9) if timeline.evaluates(epoch)] == [3, 6]


def test_time_is_nothing_to_it() -> None:
    timeline = BySteps(3, 70, 2)
    timeline.begin(10)
    timeline.stepped(100.0)
    timeline.paused(100.0)
    timeline.evaluated(100.0)
    assert timeline == BySteps(3, 70, 2)
