"""Vectors from arrays, .npz and .npy files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rte.data.statistics import nearest_distance, vector_statistics
from rte.data.types import ArrayVectors, as_images, as_vectors
from rte.data.vectors import Config, from_vectors, load
from rte.errors import DataError

X = np.random.default_rng(0).normal(size=(30, 5))
Y = np.arange(30) % 3


def test_an_npz_file_is_a_dataset(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x_train=X, y_train=Y, x_test=X[:6], y_test=Y[:6], y_train_true=Y)
    data = load(Config(path=str(tmp_path / "set.npz")), None)
    assert data.classes == ("0", "1", "2")
    assert as_vectors(data.train.images).dim == 5
    np.testing.assert_array_equal(data.train.images.fetch(np.array([3, 1])), X[[3, 1]].astype(np.float32))
    assert data.test is not None
    assert len(data.test) == 6
    assert data.y_true is not None


def test_a_npy_file_stays_on_the_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    np.save(tmp_path / "y.npy", Y)
    data = load(Config(path=str(tmp_path / "x.npy"), labels=str(tmp_path / "y.npy")), None)
    source = data.train.images
    assert isinstance(source, ArrayVectors)
    assert isinstance(source.values, np.memmap)
    assert source.fetch(np.arange(3)).dtype == np.float32
    with pytest.raises(DataError, match=r"holds no labels; name their file with --labels y.npy"):
        load(Config(path=str(tmp_path / "x.npy")), None)


def test_some_of_some_are_those_of_the_first() -> None:
    source = ArrayVectors(X).take(np.array([5, 7, 9])).take(np.array([2, 0]))
    np.testing.assert_array_equal(source.fetch(np.array([0, 1])), X[[9, 5]].astype(np.float32))
    assert source.label(0) == "vector 9"
    assert len(source) == 2


@pytest.mark.parametrize("x", [X[0], X[None], X.astype(str), np.zeros((3, 0)), np.zeros((0, 3))])
def test_what_are_no_vectors_is_refused(x: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"x_train has dtype .*give numbers of shape \(N, D\)"):
        from_vectors(x, Y[: len(x)])


def test_a_vector_with_holes_is_named_when_it_is_read() -> None:
    holes = X.copy()
    holes[7, 2] = np.nan
    with pytest.raises(DataError, match="vector 7 holds NaN or infinite numbers"):
        ArrayVectors(holes).take(np.array([1, 7])).fetch(np.array([0, 1]))


def test_labels_must_be_as_many() -> None:
    with pytest.raises(DataError, match="x_train has 30 vectors but y_train has 29 labels; give one label per vector"):
        from_vectors(X, Y[:-1])


def test_images_and_vectors_are_told_apart() -> None:
    with pytest.raises(DataError, match="works on images alone"):
        as_images(ArrayVectors(X))


def test_statistics_are_those_of_numpy() -> None:
    x = X * np.array([1.0, 1e-3, 5.0, 1.0, 0.0]) + np.array([0.0, 1e3, -4.0, 2.0, 7.0])  # far from 0; one never varies
    mean, std, nearest = vector_statistics(ArrayVectors(x))
    read = x.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(mean, read.mean(0), rtol=1e-9)
    np.testing.assert_allclose(std[:4], read.std(0)[:4], rtol=1e-6)
    assert std[4] == 1.0
    z = (read - read.mean(0)) / np.array(std)
    distances = np.linalg.norm(z[:, None] - z, axis=2) + np.diag([np.inf] * 30)
    assert nearest == pytest.approx(np.median(distances.min(1)), rel=1e-5)


def test_copies_are_no_neighbours() -> None:
    z = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    assert nearest_distance(z) == pytest.approx(5.0)
    assert nearest_distance(np.zeros((3, 2))) == 0.0
