"""The paper's rule: who inherits from whom, and what becomes of the values. Frequencies lie within binomial bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rte.search.decide import DIVERGED, exploit, explore, quarters, sample
from rte.search.space import Choice, Range, Space

PAPER: Space = {
    "train.lr": Range(1e-5, 0.1),
    "train.weight_decay": Range(5e-5, 2e-3),
    "method.q": Range(0.0, 1.0),
    "method.jsd_weight": Range(0.0, 20.0),
    "method.ecr_weight": Range(0.0, 5.0),
    "method.views": Choice((3, 4, 5, 6, 7, 8, 9, 10)),
}
MANY = 4000

seeds = st.integers(0, 2**63)
members = st.integers(0, 10_000)
epochs = st.integers(1, 10_000)
scores = st.dictionaries(
    members, st.one_of(st.floats(0, 1), st.sampled_from([0.25, 0.5, DIVERGED])), min_size=1, max_size=40
)


def about(count: int, n: int, p: float) -> bool:
    """Whether `count` of `n` is a likely outcome of probability p: within five standard deviations."""
    return abs(count - n * p) <= 5 * math.sqrt(n * p * (1 - p))


# ---- explore


@given(seeds, members, epochs, st.data())
def test_explored_values_stay_within_the_search_space(seed: int, member: int, epoch: int, data: st.DataObject) -> None:
    start = {
        key: data.draw(st.sampled_from(d.values) if isinstance(d, Choice) else st.floats(d.low, d.high))
        for key, d in PAPER.items()
    }
    for values in (
        explore(PAPER, start, seed=seed, member=member, epoch=epoch),
        sample(PAPER, seed=seed, member=member),
    ):
        assert list(values) == list(PAPER)
        for key, dimension in PAPER.items():
            if isinstance(dimension, Choice):
                assert values[key] in dimension.values
            else:
                assert dimension.low <= values[key] <= dimension.high


@given(seeds, members, epochs, st.sampled_from(range(3, 11)))
def test_a_listed_value_stays_in_the_list(seed: int, member: int, epoch: int, n_star: int) -> None:
    space: Space = {"method.views": PAPER["method.views"]}
    moved = explore(space, {"method.views": n_star}, seed=seed, member=member, epoch=epoch)["method.views"]
    assert moved in range(3, 11)


def test_a_listed_value_is_drawn_anew_by_a_quarter_and_else_moves_by_one_place_both_ways_alike() -> None:
    places = tuple(10**k for k in range(9))
    space: Space = {"k": Choice(places)}
    moved = [explore(space, {"k": places[4]}, seed=1, member=0, epoch=e)["k"] for e in range(MANY)]
    for place, value in enumerate(places):
        assert about(moved.count(value), MANY, 0.25 / 9 + 0.375 * (abs(place - 4) == 1)), place
    first = [explore(space, {"k": 1}, seed=1, member=0, epoch=e)["k"] for e in range(MANY)]
    assert about(first.count(10), MANY, 0.75 + 0.25 / 9), "at an end it moves inwards"
    assert explore({"k": Choice((7,))}, {"k": 7}, seed=1, member=0, epoch=1) == {"k": 7}


def test_a_quarter_is_drawn_anew_and_the_rest_multiplied_by_0_8_to_1_2() -> None:
    space: Space = {"a": Range(0.0, 1e9), "b": Range(0.0, 1e9)}  # a fresh draw all but never looks like a factor
    start = {"a": 1.0, "b": 1.0}
    seen = [explore(space, start, seed=2, member=m, epoch=e) for m in range(40) for e in range(MANY // 40)]
    fresh = {key: [values[key] for values in seen if values[key] > 1.2] for key in space}
    factors = [values["a"] for values in seen if values["a"] <= 1.2]
    for key in space:
        assert about(len(fresh[key]), MANY, 0.25)
        assert about(sum(value < 0.25e9 for value in fresh[key]), len(fresh[key]), 0.25)
    assert about(sum(values["a"] > 1.2 and values["b"] > 1.2 for values in seen), MANY, 1 / 16)
    assert min(factors) >= 0.8
    for edge in (0.9, 1.0, 1.1):
        assert about(sum(factor < edge for factor in factors), len(factors), (edge - 0.8) / 0.4)


def test_a_product_beyond_the_range_is_cut_to_its_end() -> None:
    space: Space = {"a": Range(0.999, 1.001)}
    moved = {explore(space, {"a": 1.0}, seed=3, member=0, epoch=e)["a"] for e in range(200)}
    assert {0.999, 1.001} <= moved


@given(seeds, members, epochs)
def test_decisions_depend_on_seed_member_and_epoch_alone(seed: int, member: int, epoch: int) -> None:
    start = sample(PAPER, seed=0, member=0)
    once = explore(PAPER, start, seed=seed, member=member, epoch=epoch)
    assert once == explore(dict(reversed(PAPER.items())), start, seed=seed, member=member, epoch=epoch)
    for other in ((seed + 1, member, epoch), (seed, member + 1, epoch), (seed, member, epoch + 1)):
        assert once != explore(PAPER, start, seed=other[0], member=other[1], epoch=other[2])


def test_a_population_begins_spread_over_the_space() -> None:
    drawn = [sample(PAPER, seed=4, member=m) for m in range(MANY)]
    for key, dimension in PAPER.items():
        values = [each[key] for each in drawn]
        if isinstance(dimension, Choice):
            assert all(about(values.count(v), MANY, 1 / 8) for v in dimension.values)
        else:
            third = dimension.low + (dimension.high - dimension.low) / 3
            assert about(sum(v < third for v in values), MANY, 1 / 3)


# ---- exploit


@pytest.mark.parametrize(("n", "size"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2), (8, 2), (9, 3), (35, 9)])
def test_a_quarter_of_n(n: int, size: int) -> None:
    worst, best = quarters({member: member / 100 for member in range(n)})
    assert worst == list(range(size))
    assert best == list(range(n - size, n))


@given(scores, seeds, epochs)
def test_the_worst_quarter_inherits_from_the_best_and_nobody_else_does(
    population: dict[int, float], seed: int, epoch: int
) -> None:
    worst, best = quarters(population)
    assert not set(worst) & set(best)
    for member, score in population.items():
        parent = exploit(population, member, seed=seed, epoch=epoch)
        assert parent == exploit(dict(reversed(population.items())), member, seed=seed, epoch=epoch)
        better = [other for other in best if population[other] > score]
        if better and (member in worst or score == DIVERGED):
            assert parent in better
        else:
            assert parent == member


def test_each_of_the_best_quarter_is_chosen_alike() -> None:
    population = {member: float(member) for member in range(16)}
    chosen = [exploit(population, 0, seed=5, epoch=e) for e in range(MANY)]
    assert set(chosen) == {12, 13, 14, 15}
    assert all(about(chosen.count(m), MANY, 0.25) for m in set(chosen))
    both = [(exploit(population, 0, seed=5, epoch=e), exploit(population, 1, seed=5, epoch=e)) for e in range(MANY)]
    assert about(sum(a == b for a, b in both), MANY, 0.25)


def test_ties_and_diverged_members() -> None:
    assert [exploit(dict.fromkeys(range(8), 0.1), m, seed=0, epoch=1) for m in range(8)] == list(range(8))
    # equal scores: the lower number is the better one
    assert quarters({0: 0.5, 1: 0.5, 2: 0.5, 3: 0.9}) == ([2], [3])
    # three diverged of four: the worst quarter is one, yet all three inherit from the healthy one
    lost = {0: DIVERGED, 1: DIVERGED, 2: 0.3, 3: DIVERGED}
    assert [exploit(lost, m, seed=0, epoch=1) for m in range(4)] == [2, 2, 2, 2]
    assert exploit({0: DIVERGED}, 0, seed=0, epoch=1) == 0
