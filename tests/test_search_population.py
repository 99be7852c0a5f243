"""The state of a search on scripted scores: no Ray, no training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rte.errors import TrainingError
from rte.search.decide import explore, sample
from rte.search.population import Interval, Population, Record
from rte.search.space import Choice, Range, Space

SPACE: Space = {"train.lr": Range(0.0, 1.0), "method.views": Choice((3, 4, 5))}
Score = Callable[[int, int], float | None]


def population(size: int = 8, interval: int = 2, epochs: int = 7, seed: int = 3, **rest: Any) -> Population:
    return Population(SPACE, size=size, interval=interval, epochs=epochs, seed=seed, **rest)


def done(job: Interval, score: float | None) -> Record:
    place = f"{job.member}@{job.until}"
    return Record(job.member, job.start, job.until, job.parent, job.values, score, place)


def jobs(state: Population) -> list[Interval]:
    """All intervals that can start now."""
    out: list[Interval] = []
    while (job := state.next_interval()) is not None:
        out.append(job)
    return out


def scripted(seed: int) -> Score:
    return lambda member, epoch: float(np.random.default_rng([seed, member, epoch]).random())


def play(state: Population, score: Score, order: int = 0, slots: int = 3, stop: int | None = None) -> list[Record]:
    """Do all intervals, up to `slots` at once, finishing in an order of their own; or only the first `stop` of them."""
    rng = np.random.default_rng(order)
    running: list[Interval] = []
    records: list[Record] = []
    while not state.finished and len(records) != stop:
        while len(running) < slots and (job := state.next_interval()) is not None:
            running.append(job)
        job = running.pop(int(rng.integers(len(running))))
        records.append(done(job, score(job.member, job.until)))
        state.add(records[-1])
    return records


def test_members_begin_with_values_of_their_own() -> None:
    state = population(size=3)
    for member, job in enumerate(jobs(state)):
        assert job == Interval(member, 0, 2, member, None, sample(SPACE, seed=3, member=member))


def test_the_rule_on_scripted_scores() -> None:
    state = population()
    score = scripted(0)
    play(state, score)
    assert sorted(state.rungs) == [2, 4, 6, 7]
    for epoch in (2, 4, 6):
        before = state.rungs[epoch]
        after = state.rungs[min(epoch + 2, 7)]
        ranking = np.argsort([score(member, epoch) for member in range(8)])
        worst, best = set(ranking[:2].tolist()), set(ranking[-2:].tolist())
        for member, record in after.items():
            assert record.start == epoch
            if member in worst:
                assert record.parent in best
                inherited = before[record.parent].values
                assert record.values == explore(SPACE, inherited, seed=3, member=member, epoch=epoch)
                assert record.values["train.lr"] != inherited["train.lr"]
            else:
                assert record.parent == member
                assert record.values == before[member].values


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 9), st.integers(0, 31))
def test_neither_the_order_nor_an_interrupt_changes_a_synchronous_search(
    scores: int, order: int, slots: int, stop: int
) -> None:
    straight = population()
    play(straight, scripted(scores), order=0, slots=1)
    first = play(population(), scripted(scores), order=order, slots=slots, stop=stop)
    resumed = population(records=first)
    play(resumed, scripted(scores), order=order + 1, slots=slots)
    assert resumed.rungs == straight.rungs


def test_synchronous_members_wait_for_the_last_one() -> None:
    state = population(size=4)
    *first, last = jobs(state)
    for job in first:
        state.add(done(job, 0.5))
        assert state.next_interval() is None
    state.add(done(last, 0.1))
    assert [(job.member, job.parent) for job in jobs(state)] == [(0, 0), (1, 1), (2, 2), (3, 0)]


def test_asynchronous_members_go_on_and_are_compared_within_an_epoch() -> None:
    state = population(size=4, epochs=6, asynchronous=True)
    begun = jobs(state)
    state.add(done(begun[0], 0.2))
    ahead = state.next_interval()
    assert ahead is not None
    assert (ahead.member, ahead.start, ahead.parent) == (0, 2, 0)  # nobody to compare with yet
    state.add(done(ahead, 0.9))  # a score of epoch 4, of no account at epoch 2
    state.add(done(begun[1], 0.1))
    worse = state.next_interval()
    assert worse is not None
    assert (worse.member, worse.parent, worse.source) == (1, 0, "0@2")
    state.add(done(begun[2], 0.4))
    assert state.running.keys() == {1, 3}
    assert state.needed_from == 0
    play_on(state, scripted(1))
    assert state.finished


def play_on(state: Population, score: Score) -> None:
    while not state.finished:
        jobs(state)
        job = min(state.running.values(), key=lambda job: (job.until, job.member))
        state.add(done(job, score(job.member, job.until)))


def test_the_member_furthest_behind_comes_first() -> None:
    state = population(size=3, epochs=6, asynchronous=True)
    begun = jobs(state)
    state.add(done(begun[0], 0.1))
    state.running.pop(2)
    assert state.next_interval() == begun[2]  # the same interval once more, not the next one of member 0


def test_diverged_members_inherit() -> None:
    state = population(size=4, epochs=4)
    lost = {0, 1, 2}
    play(state, lambda member, epoch: None if epoch == 2 and member in lost else 0.5)
    assert {m: r.parent for m, r in state.rungs[4].items()} == {0: 3, 1: 3, 2: 3, 3: 3}
    assert state.winner() == 0


def test_a_diverged_member_waits_for_somebody_to_inherit_from() -> None:
    state = population(size=2, epochs=4, asynchronous=True)
    first, second = jobs(state)
    state.add(done(first, None))
    assert state.next_interval() is None
    state.add(done(second, 0.2))
    assert [(job.member, job.parent) for job in jobs(state)] == [(0, 1), (1, 1)]


def test_all_diverged() -> None:
    state = population(size=3, epochs=4)
    with pytest.raises(TrainingError, match=r"by epoch 2; narrow the search.*train\.lr"):
        play(state, lambda member, epoch: None)
    state = population(size=3, epochs=4)
    play(state, lambda member, epoch: None if epoch == 4 else 0.1)
    with pytest.raises(TrainingError, match="last interval"):
        state.winner()


def test_lineage_and_winner() -> None:
    state = population(size=4, epochs=6)
    # member 3 wins at 2, member 0 is last and inherits from it, then leads to the end
    table = {2: [0.1, 0.2, 0.3, 0.4], 4: [0.9, 0.2, 0.3, 0.4], 6: [0.9, 0.9, 0.3, 0.4]}
    play(state, lambda member, epoch: table[epoch][member])
    assert state.winner() == 0  # of equal ones the lower number
    chain = state.lineage(0)
    assert [(r.member, r.start, r.until) for r in chain] == [(3, 0, 2), (0, 2, 4), (0, 4, 6)]
    assert chain[1].values == explore(SPACE, chain[0].values, seed=3, member=0, epoch=2)
    assert [r.member for r in state.lineage(1)] == [3, 0, 1]
    assert state.total == state.done == 12
    assert state.needed_from == 6


def test_how_much_there_is_to_do() -> None:
    state = population(size=5, interval=3, epochs=7)
    assert state.total == 5 * math.ceil(7 / 3)
    assert (state.done, state.finished, state.needed_from, state.lineage(0), state.latest(0)) == (0, False, 0, [], None)
