"""Channel statistics and held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rte.data import cifar10
from rte.data._own import with_test_share
from rte.data.statistics import channel_statistics, holdout
from rte.data.types import ArrayImages, Dataset, Pixels, Split
from rte.errors import DataError

RNG = np.random.default_rng(0)


class Mixed:
    """Images of different sizes."""

    def __init__(self, images: Sequence[Pixels]) -> None:
        self.images = images

    channels = 3
    size = None

    def __len__(self) -> int:
        return len(self.images)

    def fetch(self, index: np.ndarray) -> list[Pixels]:
        return [self.images[i] for i in index]

    def label(self, i: int) -> str:
        return str(i)


@pytest.mark.parametrize("channels", [1, 3])
def test_statistics_are_numpys(channels: int) -> None:
    x = RNG.integers(0, 256, (75, 6, 7, channels), dtype=np.uint8)
    mean, std = channel_statistics(ArrayImages(x))
    np.testing.assert_allclose(mean, (x / 255).mean(axis=(0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std, (x / 255).std(axis=(0, 1, 2)), rtol=1e-12)
    assert all(type(value) is float for value in mean + std)


def test_limit_takes_evenly_spaced_images() -> None:
    x = np.zeros((100, 2, 2, 1), np.uint8)
    x[[0, 33, 66, 99]] = 255
    assert channel_statistics(ArrayImages(x), limit=4)[0] == (1.0,)


def test_photographs_are_read_one_by_one() -> None:
    asked: list[int] = []

    class Counted(Mixed):
        def fetch(self, index: np.ndarray) -> list[Pixels]:
            asked.append(len(index))
            return super().fetch(index)

    channel_statistics(Counted([np.zeros((2, 2, 3), np.uint8)] * 40))
    assert asked == [1] * 40


def test_images_of_different_sizes_count_the_same() -> None:
    black, white = np.zeros((2, 2, 3), np.uint8), np.full((20, 30, 3), 255, np.uint8)
    mean, std = channel_statistics(Mixed([black, white, black, white]))
    np.testing.assert_allclose(mean, [0.5] * 3)
    np.testing.assert_allclose(std, [0.5] * 3)


def test_constant_channel_can_be_divided_by() -> None:
    mean, std = channel_statistics(ArrayImages(np.full((3, 2, 2, 1), 51, np.uint8)))
    np.testing.assert_allclose(mean, [0.2])
    assert std == (1 / 255,)


def test_cifar_statistics_are_the_published_ones(cifar: Path) -> None:
    images = cifar10.load(cifar10.Config(), cifar).train.images
    mean, std = channel_statistics(images, limit=50000)
    np.testing.assert_allclose(mean, [0.49139968, 0.48215841, 0.44653091], atol=5e-9)
    np.testing.assert_allclose(std, [0.24703223, 0.24348513, 0.26158784], atol=5e-9)


@given(st.lists(st.integers(0, 4), min_size=20, max_size=200), st.floats(0.1, 0.9), st.integers(0, 5))
def test_holdout_divides_the_rows_by_label(labels: list[int], share: float, seed: int) -> None:
    y = np.array(labels)
    train, held = holdout(y, share, seed)
    assert sorted([*train, *held]) == list(range(len(y)))
    assert train.dtype == held.dtype == np.int64
    assert np.array_equal(train, np.sort(train))
    assert np.array_equal(held, np.sort(held))
    counts = np.bincount(y, minlength=5)
    assert np.abs(np.bincount(y[held], minlength=5) - share * counts).max() < 1 + 1e-6
    assert set(y[train]) == set(y)
    spare = counts - np.floor(share * counts + 1e-9) >= 2
    if spare[counts > 0].all():
        assert len(held) == round(share * len(y))


def test_holdout_holds_exactly_the_share_where_it_divides() -> None:
    y = np.repeat(np.arange(10), 100)
    _, held = holdout(y, 0.1, 3)
    assert np.bincount(y[held]).tolist() == [10] * 10


def test_holdout_rounds_up_the_largest_remainders() -> None:
    y = np.repeat([0, 1, 2], [14, 11, 12])  # a quarter is 3.5, 2.75 and 3: nine in all, so one label gets one more
    _, held = holdout(y, 0.25, 0)
    assert np.bincount(y[held]).tolist() == [3, 3, 3]


def test_holdout_depends_on_seed_and_only_on_it() -> None:
    y = np.repeat(np.arange(4), 50)
    assert np.array_equal(holdout(y, 0.2, 1)[1], holdout(y, 0.2, 1)[1])
    assert not np.array_equal(holdout(y, 0.2, 1)[1], holdout(y, 0.2, 2)[1])


def test_holdout_of_nothing() -> None:
    train, held = holdout(np.array([0, 1, 1]), 0.0, 0)
    assert train.tolist() == [0, 1, 2]
    assert held.tolist() == []


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0])
def test_impossible_share(share: float) -> None:
    with pytest.raises(DataError, match=rf"a share of {share} cannot be held out; give a number from 0 to below 1"):
        holdout(np.array([0, 1]), share, 0)


def test_share_too_small_to_hold_anything() -> None:
    with pytest.raises(DataError, match=r"holding out 0\.01 of 4 examples holds none; give a larger share"):
        holdout(np.array([0, 0, 1, 1]), 0.01, 0)


def dataset(y_true: np.ndarray | None = None) -> Dataset:
    x = np.arange(20, dtype=np.uint8).reshape(20, 1, 1, 1)
    return Dataset("toy", ("a", "b"), Split(ArrayImages(x), np.arange(20) % 2), y_true=y_true)


def test_test_share_keeps_images_and_labels_together() -> None:
    data = with_test_share(dataset(), 0.3)
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (14, 6)
    for split in (data.train, data.test):
        values = np.asarray(split.images.fetch(np.arange(len(split)))).ravel()
        assert np.array_equal(values % 2, split.y)


def test_test_images_are_scored_by_the_truth_where_it_is_known() -> None:
    truth = 1 - np.arange(20) % 2
    data = with_test_share(dataset(truth), 0.3)
    assert data.test is not None
    assert data.y_true is not None
    values = np.asarray(data.test.images.fetch(np.arange(6))).ravel()
    assert np.array_equal(data.test.y, 1 - values % 2)
    assert np.array_equal(data.y_true, 1 - data.train.y)


def test_no_second_test_split() -> None:
    with pytest.raises(DataError, match=r"toy has a test split already; leave test_share at 0"):
        with_test_share(with_test_share(dataset(), 0.3), 0.3)


def test_groups_are_held_as_a_whole_and_the_shares_are_met_as_nearly_as_they_allow() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, 600)
    y = (rng.random(600) < 0.3).astype(np.int64)
    rows, held = holdout(y, 0.2, 3, groups)
    assert not set(groups[rows]) & set(groups[held])
    assert sorted([*rows, *held]) == list(range(600))
    for label in (0, 1):
        assert abs((y[held] == label).sum() - 0.2 * (y == label).sum()) <= 6, "a group has ten examples"
    assert holdout(y, 0.2, 3, groups)[1].tolist() == held.tolist()
    assert holdout(y, 0.2, 4, groups)[1].tolist() != held.tolist()


def test_a_class_is_never_held_whole_with_its_group() -> None:
    y, groups = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 4, 4])
    assert 4 not in groups[holdout(y, 0.5, 0, groups)[1]]
    with pytest.raises(DataError, match="no group can be held out: there are 2, and each is too large"):
        holdout(y, 0.2, 0, np.array([0, 0, 0, 1, 1, 1]))
