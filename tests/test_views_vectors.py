"""Views of vectors against a slow reference, and that each is a function of (seed, epoch, example, view) alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rte.data.types import ArrayVectors
from rte.errors import DataError
from rte.views.batch import ViewPlan
from rte.views.sampling import branch, states, uniform
from rte.views.vectors import BANK, VectorViewConfig, VectorViewer, bank_of

X = np.random.default_rng(0).normal(3.0, 2.0, (40, 6)).astype(np.float32)
MEAN, STD = X.mean(0).tolist(), X.std(0).tolist()
Z = (X - np.float32(MEAN)) / np.float32(STD)
PLAN = ViewPlan(weak=1, strong=2)


def viewer(nearest: float = 0.7, *, bank: bool = True, **settings: float) -> VectorViewer:
    cfg = VectorViewConfig.model_validate(settings)
    return VectorViewer(cfg, mean=MEAN, std=STD, nearest=nearest, bank=Z if bank else None)


def render(index: list[int], *, epoch: int = 3, seed: int = 5, made: VectorViewer | None = None, **rest: object):
    rows = np.array(index)
    views = (made or viewer()).render(X[rows], rows, seed=seed, epoch=epoch, plan=PLAN, **rest)
    return views.reshape(PLAN.total, len(rows), -1)


def test_the_weak_view_is_the_standardised_vector() -> None:
    np.testing.assert_allclose(render([4, 9])[0], Z[[4, 9]], rtol=1e-6)
    np.testing.assert_allclose(viewer().plain(X[:3]), Z[:3], rtol=1e-6)


def test_a_strong_view_is_noise_along_a_direction_between_two_examples() -> None:
    """By the formula of the file, with the same random numbers, one number at a time."""
    made = viewer(jitter=1.5, dropout=0.0)
    found = render([7], made=made)
    state = branch(branch(states(np.array([7]), seed=5, epoch=3, stream=0), 2)[:, 1], 2)
    for k in range(2):
        first, second, one, two = uniform(state[:, k], 4)[:, 0]
        a = int(first * len(Z))
        b = (a + 1 + int(second * (len(Z) - 1))) % len(Z)
        d = Z[a].astype(np.float64) - Z[b]
        r = math.sqrt(-2 * math.log(1 - one)) * math.cos(2 * math.pi * two)
        expected = Z[7] + 1.5 * 0.7 * r * d / np.linalg.norm(d)
        np.testing.assert_allclose(found[1 + k, 0], expected, rtol=1e-4, atol=1e-5)


def test_the_noise_has_the_length_that_was_asked_for() -> None:
    made = viewer(jitter=2.0, dropout=0.0)
    moved = np.concatenate([render(list(range(40)), made=made, epoch=e)[1] - Z for e in range(100)])
    assert math.sqrt((moved**2).sum(1).mean()) == pytest.approx(2.0 * 0.7, rel=0.05)


def test_the_noise_varies_as_the_data_does() -> None:
    """Along a coordinate that never varies there is none."""
    x = X.copy()
    x[:, 2] = 1.0
    z = x - x.mean(0)
    made = VectorViewer(VectorViewConfig(dropout=0.0), mean=x.mean(0), std=[1.0] * 6, nearest=1.0, bank=z)
    views = made.render(x, np.arange(40), seed=0, epoch=0, plan=ViewPlan(strong=1)).reshape(2, 40, 6)
    np.testing.assert_allclose(views[1, :, 2], 0.0, atol=1e-6)
    assert views[1, :, 3].std() > 0.1


def test_dropped_numbers_are_the_mean() -> None:
    made = viewer(jitter=0.0, dropout=0.3)
    views = np.concatenate([render(list(range(40)), made=made, epoch=e)[1] for e in range(50)])
    kept = np.tile(Z, (50, 1))
    assert ((views == 0) | (views == kept)).all()
    assert (views == 0).mean() == pytest.approx(0.3, abs=0.02)


def test_a_view_depends_on_seed_epoch_example_and_number_alone() -> None:
    alone, among = render([7]), render([3, 7, 9])
    np.testing.assert_array_equal(alone[:, 0], among[:, 1])
    assert not np.array_equal(alone[1], alone[2])
    assert not np.array_equal(alone[1], render([7], epoch=4)[1])
    assert not np.array_equal(alone[1], render([7], seed=6)[1])
    assert not np.array_equal(alone[1], render([7], stream=1)[1])
    again = render([7], again=np.array([1]))
    assert not np.array_equal(alone[1], again[1])


def test_views_are_written_where_they_are_wanted() -> None:
    out = np.empty((PLAN.total * 2, 6), np.float32)
    rows = np.array([1, 2])
    found = viewer().render(X[rows], rows, seed=0, epoch=0, plan=PLAN, out=out)
    assert found is out
    np.testing.assert_array_equal(out, viewer().render(X[rows], rows, seed=0, epoch=0, plan=PLAN))


def test_strong_views_need_training_examples() -> None:
    with pytest.raises(DataError, match="give the viewer a bank of at least two"):
        render([1], made=viewer(bank=False))


def test_the_bank_is_some_standardised_examples_by_the_seed() -> None:
    many = np.random.default_rng(1).normal(size=(BANK + 500, 3))
    source = ArrayVectors(many)
    one = bank_of(source, [0.5] * 3, [2.0] * 3, seed=1)
    assert one.shape == (BANK, 3)
    np.testing.assert_array_equal(one, bank_of(source, [0.5] * 3, [2.0] * 3, seed=1))
    assert not np.array_equal(one, bank_of(source, [0.5] * 3, [2.0] * 3, seed=2))
    place = np.flatnonzero(np.isclose(many[:, 0], one[0, 0] * 2.0 + 0.5, atol=1e-5))
    np.testing.assert_allclose(many[place[0]], one[0] * 2.0 + 0.5, atol=1e-5)
