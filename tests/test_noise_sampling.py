"""Sampled labels: how many go wrong, which ones, into what, and that a seed decides it all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rte.errors import NoiseError
from rte.noise.config import Sampling
from rte.noise.matrix import NoiseModel, transition_counts
from rte.noise.sampling import corrupted

CIFAR = np.repeat(np.arange(10), 5000)
SAMPLINGS: tuple[Sampling, ...] = ("exact", "bernoulli", "stratified")

# RTE paper, table c_asym_sample_60: labels of each class after sampling, and how many of them are right.
PAPER_TOTAL = np.array([5578, 4069, 6023, 6205, 5056, 4480, 5476, 4130, 3896, 5087])
PAPER_RIGHT = np.array([1958, 2003, 2017, 2038, 1986, 1977, 2019, 2028, 2024, 1950])


def spread(F: np.ndarray) -> np.ndarray:
    """Standard deviation of the number of labels of each class, for independent draws from 5000 examples a class."""
    return np.sqrt(5000 * (F * (1 - F)).sum(axis=0))


def test_the_sampled_set_of_the_paper() -> None:
    F = NoiseModel.confusion_cifar10(0.6).F
    counts = transition_counts(CIFAR, NoiseModel.confusion_cifar10(0.6).sample(CIFAR, seed=0), 10)
    expected = 5000 * F.sum(axis=0)
    # drawing 20,000 of 50,000 without putting back: hypergeometric, 5,000 of each class
    right_spread = np.sqrt(20000 * 0.1 * 0.9 * 30000 / 49999)
    for total, right in ((PAPER_TOTAL, PAPER_RIGHT), (counts.sum(axis=0), np.diag(counts))):
        assert total.sum() == 50000
        assert right.sum() == 20000
        assert (np.abs(total - expected) < 3.5 * spread(F)).all()
        assert (np.abs(right - 2000) < 3.5 * right_spread).all()
    assert len(set(np.diag(counts))) > 1, "an exact quota per class is not the paper's sampling"
    # the check has teeth: the matrix read the wrong way round is far off
    assert (np.abs(PAPER_TOTAL - 5000 * (0.6 * F.T + 0.4 * np.eye(10)).sum(axis=0)) > 10 * spread(F)).any()


@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.4, 0.8, 1.0])
def test_exact_is_exact_over_the_whole_set(ratio: float) -> None:
    for seed in range(3):
        y = NoiseModel.symmetric(10, ratio).sample(CIFAR, seed=seed)
        assert (y != CIFAR).sum() == round(ratio * 50000)


def test_forty_percent_of_patrini_is_twenty_percent_of_all() -> None:
    y = NoiseModel.patrini_cifar10(0.4).sample(CIFAR, seed=3)
    assert (y != CIFAR).sum() == 10000
    assert_array_equal(np.unique(CIFAR[y != CIFAR]), [2, 3, 4, 5, 9])
    assert len(set(np.bincount(CIFAR[y != CIFAR])[[2, 3, 4, 5, 9]])) > 1


def test_inclusive_eighty_percent_leaves_twenty_eight_percent_right() -> None:
    assert (NoiseModel.symmetric_inclusive(10, 0.8).sample(CIFAR, seed=0) != CIFAR).mean() == 0.72


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5), st.integers(1, 60), st.integers(0, 2**31))
def test_exact_number_for_any_shares(P: list[float], n: int, seed: int) -> None:
    k = len(P)
    model = NoiseModel(np.array(P), (1 - np.eye(k)) / (k - 1))
    y = np.random.default_rng(seed).integers(0, k, n)
    wrong = int((model.sample(y, seed=seed) != y).sum())
    total = float(model.P[y].sum())
    assert abs(wrong - total) <= 0.5 + 1e-6
    always, never = model.P[y] == 1, model.P[y] == 0
    changed = model.sample(y, seed=seed) != y
    assert changed[always].all()
    assert not changed[never].any()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_each_class_is_corrupted_as_often_as_its_share_says(sampling: Sampling) -> None:
    P = np.array([0.1, 0.5, 0.9, 0.0])
    model = NoiseModel(P, (1 - np.eye(4)) / 3)
    y = np.array([0] * 10 + [1] * 4 + [2] * 10 + [3] * 6)
    runs = 2000
    hits = sum((model.sample(y, seed=seed, sampling=sampling) != y).astype(int) for seed in range(runs))
    # stratified quotas of these sizes are whole numbers, so all three have the same expectation
    error = 4.5 * np.sqrt(P[y] * (1 - P[y]) / runs)
    assert (np.abs(hits / runs - P[y]) <= error).all()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_wrong_labels_follow_the_rows_of_c(sampling: Sampling) -> None:
    model = NoiseModel.confusion_cifar10(0.6)
    counts = transition_counts(CIFAR, model.sample(CIFAR, seed=5, sampling=sampling), 10)
    off = counts - np.diag(np.diag(counts))
    wrong = off.sum(axis=1, keepdims=True)
    error = 4.5 * np.sqrt(wrong * model.C * (1 - model.C)) + 1e-9
    assert (np.abs(off - wrong * model.C) <= error).all()
    assert not off[model.C == 0].any()


def test_stratified_is_exact_in_each_class() -> None:
    y = np.array([0] * 7 + [1] * 10 + [2] * 5)
    changed = NoiseModel.symmetric(3, 0.3).sample(y, seed=1, sampling="stratified") != y
    assert_array_equal(np.bincount(y[changed], minlength=3), [2, 3, 2])  # 2.1, 3, 1.5 to the even number


def test_bernoulli_varies_around_the_ratio() -> None:
    model = NoiseModel.symmetric(10, 0.4)
    counts = [int((model.sample(CIFAR, seed=s, sampling="bernoulli") != CIFAR).sum()) for s in range(8)]
    assert len(set(counts)) > 1
    assert all(abs(count - 20000) < 4.5 * np.sqrt(50000 * 0.24) for count in counts)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_seed_decides_the_labels(sampling: Sampling) -> None:
    model = NoiseModel.symmetric(10, 0.4)
    first = model.sample(CIFAR, seed=7, sampling=sampling)
    np.random.seed(1)  # noqa: NPY002 - a global stream must play no part
    assert_array_equal(model.sample(CIFAR.astype(np.uint8), seed=7, sampling=sampling), first)
    assert (model.sample(CIFAR, seed=8, sampling=sampling) != first).any()
    assert first.dtype == np.int64
    assert_array_equal(CIFAR, np.repeat(np.arange(10), 5000))


def test_labels_of_a_seed_stay_the_same_for_ever() -> None:
    """Manifests of old runs must rebuild: a change of these digits breaks them."""
    y = np.arange(20) % 4
    assert NoiseModel.symmetric(4, 0.5).sample(y, seed=0).tolist() == FROZEN["exact"]
    assert NoiseModel.symmetric(4, 0.5).sample(y, seed=0, sampling="bernoulli").tolist() == FROZEN["bernoulli"]
    assert NoiseModel.symmetric(4, 0.5).sample(y, seed=0, sampling="stratified").tolist() == FROZEN["stratified"]


FROZEN = {
    "exact": [1, 0, 3, 1, 2, 3, 3, 3, 0, 0, 2, 3, 0, 1, 2, 2, 2, 1, 2, 3],
    "bernoulli": [0, 0, 3, 3, 0, 3, 3, 1, 1, 1, 1, 2, 0, 1, 2, 3, 2, 1, 0, 3],
    "stratified": [0, 0, 3, 3, 0, 3, 3, 1, 1, 1, 2, 2, 0, 1, 2, 3, 2, 1, 2, 3],
}


class Fixed(np.random.Generator):
    """A generator whose every draw is one number."""

    def __init__(self, value: float) -> None:
        super().__init__(np.random.Philox(0))
        self.value = value

    def random(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return np.full(size, self.value)


@pytest.mark.parametrize(("draw", "last"), [(0.0, False), (np.nextafter(1.0, 0.0), True)])
def test_extreme_draws_land_on_a_class_that_can_be(draw: float, last: bool) -> None:
    rows = np.array(NoiseModel.confusion_cifar10(0.6).C)
    y = corrupted(np.arange(10), np.ones(10, bool), rows, Fixed(draw))
    for a, b in enumerate(y):
        possible = np.flatnonzero(rows[a])
        assert b == possible[-1 if last else 0]


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        ([0, 1, 4], "'symmetric' has 4 classes but a label is 4; labels must be 0 to 3"),
        ([0, -1], "a label is -1"),
        ([0.0, 1.0], "dtype float64"),
        ([[0, 1]], r"shape \(1, 2\)"),
        (np.array([], dtype=int), "there are no labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y: Any, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        NoiseModel.symmetric(4, 0.5).sample(y, seed=0)
    with pytest.raises(NoiseError, match=reason):
        NoiseModel.symmetric(4, 0.5).expected_wrong(y)


def test_unknown_sampling_names_the_nearest() -> None:
    with pytest.raises(NoiseError, match="unknown sampling 'exakt'; did you mean 'exact'"):
        NoiseModel.symmetric(4, 0.5).sample([0, 1], seed=0, sampling="exakt")  # type: ignore[arg-type]
