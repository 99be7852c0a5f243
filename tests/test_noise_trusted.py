"""Trusted examples: who is one, that noise spares them, and that a method finds them where the task says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import quick

from rte.data.arrays import from_arrays
from rte.data.types import Dataset
from rte.errors import ConfigError, DataError
from rte.noise.trusted import trusted_rows
from rte.run.build import load_dataset, make_trainer, prepare

Y = np.repeat(np.arange(4), [40, 30, 20, 5])


def dataset() -> Dataset:
    """95 images, of few classes and of one that is rare."""
    return from_arrays(np.zeros((len(Y), 4, 4), np.uint8), Y)


@pytest.mark.parametrize(("wanted", "counts"), [(4, [1, 1, 1, 1]), (22, [6, 6, 5, 5]), (40, [12, 12, 11, 5])])
def test_a_number_of_them_is_drawn_evenly_over_classes(wanted: int, counts: list[int]) -> None:
    rows = trusted_rows(dataset(), wanted, injected=True, seed=0)
    found = np.bincount(Y[rows], minlength=4)
    assert sorted(found[:3].tolist(), reverse=True) == counts[:3]
    assert found[3] == counts[3]
    assert len(np.unique(rows)) == wanted
    assert (np.diff(rows) > 0).all()


def test_none_all_and_another_seed() -> None:
    data = dataset()
    assert len(trusted_rows(data, 0, injected=True, seed=0)) == 0
    np.testing.assert_array_equal(trusted_rows(data, 95, injected=True, seed=0), np.arange(95))
    first, again, other = (trusted_rows(data, 20, injected=True, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert first.tolist() != other.tolist()
    with pytest.raises(ConfigError, match=r"train\.trusted = 96 exceeds the 95 training examples"):
        trusted_rows(data, 96, injected=True, seed=0)


def test_nobody_can_be_trusted_where_nobody_knows_the_truth() -> None:
    with pytest.raises(ConfigError, match=r"nobody knows which labels .* are right; name a text file"):
        trusted_rows(dataset(), 5, injected=False, seed=0)


def test_a_file_names_them_by_row(tmp_path: Path) -> None:
    file = tmp_path / "checked.txt"
    file.write_text("7\n3\n\n 90 \n3\n")
    assert trusted_rows(dataset(), str(file), injected=False, seed=0).tolist() == [3, 7, 90]
    file.write_text("7\n95\n")
    with pytest.raises(DataError, match=r"names row 95, but the training set has rows 0 to 94"):
        trusted_rows(dataset(), str(file), injected=False, seed=0)
    file.write_text("\n")
    with pytest.raises(ConfigError, match="names no example"):
        trusted_rows(dataset(), str(file), injected=False, seed=0)
    with pytest.raises(ConfigError, match="cannot be read"):
        trusted_rows(dataset(), str(tmp_path / "nothing.txt"), injected=False, seed=0)


def test_a_file_names_them_by_the_names_of_images(tmp_path: Path) -> None:
    file = tmp_path / "checked.txt"
    file.write_text("image 4\nimage 2\n")
    assert trusted_rows(dataset(), str(file), injected=False, seed=0).tolist() == [2, 4]
    file.write_text("image 4\nphoto.jpg\n")
    with pytest.raises(DataError, match=r"names photo\.jpg, which is no training example"):
        trusted_rows(dataset(), str(file), injected=False, seed=0)


@pytest.mark.parametrize("more", [{}, {"examples": 600}, {"holdout": 0.2}, {"examples": 600, "holdout": 0.2}])
def test_noise_spares_them_and_a_method_finds_them(more: dict[str, float]) -> None:
    config = quick("ce", noise={"name": "symmetric", "ratio": 0.6}, train={"trusted": 60, **more})
    prepared = prepare(config, load_dataset(config, None))
    given, truth = prepared.dataset.train.y, prepared.dataset.y_true
    assert truth is not None
    rows = prepared.train_rows[prepared.trusted]
    assert len(rows) == 60, "all of them are trained on"
    np.testing.assert_array_equal(given[rows], truth[rows])
    assert np.bincount(truth[rows], minlength=10).tolist() == [6] * 10
    others = np.setdiff1d(np.arange(len(given)), rows)
    assert (given[others] != truth[others]).mean() == pytest.approx(0.6, abs=0.01)
    trainer, _ = make_trainer(prepared, save=lambda name, state: None)
    y = trainer.method.y.numpy()
    np.testing.assert_array_equal(y[prepared.trusted], truth[rows])


def test_they_are_the_same_after_a_resume() -> None:
    config = quick("ce", train={"trusted": 30})
    first, again = (prepare(config, load_dataset(config, None)) for _ in range(2))
    np.testing.assert_array_equal(first.trusted, again.trusted)
