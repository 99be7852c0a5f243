"""NumPy arrays and .npz files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rte.data import arrays
from rte.data.arrays import Config, as_pixels, from_arrays, load, read_images
from rte.errors import DataError

X = np.random.default_rng(0).integers(0, 256, (12, 5, 4, 3), dtype=np.uint8)
Y = np.arange(12) % 3


def npz(folder: Path, **stored: Any) -> Path:
    path = folder / "set.npz"
    np.savez_compressed(path, **stored)
    return path


def test_arrays_become_a_dataset() -> None:
    data = from_arrays(X, Y + 10, X[:6], Y[:6] + 10, y_true=Y[::-1] + 10, name="mine")
    assert data.name == "mine"
    assert data.classes == ("10", "11", "12")
    assert np.array_equal(data.train.images.fetch(np.arange(12)), X)
    assert data.train.y.tolist() == Y.tolist()
    assert data.test is not None
    assert data.test.y.tolist() == Y[:6].tolist()
    assert data.y_true is not None
    assert data.y_true.tolist() == Y[::-1].tolist()


def test_uint8_images_are_not_copied() -> None:
    assert np.shares_memory(as_pixels(X, "x"), X)


def test_grey_images_without_channel_axis() -> None:
    data = from_arrays(X[..., 0], Y)
    assert data.train.images.channels == 1
    assert data.train.images.size == (5, 4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_in_0_to_1_come_back_exactly(dtype: type) -> None:
    assert np.array_equal(as_pixels((X / 255).astype(dtype), "x"), X)


def test_floats_are_converted_the_same_in_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK", 5)
    assert np.array_equal(as_pixels(X / 255, "x"), X)


def test_nan_is_named_by_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK", 5)
    x = X / 255
    x[7, 1, 1, 1] = np.nan
    with pytest.raises(DataError, match=r"image 7 of x_train holds NaN or infinite values; remove or repair it"):
        from_arrays(x, Y)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf])
def test_infinity_is_named_by_image(wrong: float) -> None:
    x = X / 255
    x[2] = wrong
    with pytest.raises(DataError, match=r"image 2 of x_train holds NaN or infinite"):
        from_arrays(x, Y)


def test_floats_out_of_range_say_their_range() -> None:
    x = np.zeros((12, 5, 4))
    x[3, 0, 0] = 255
    with pytest.raises(DataError, match=r"image 3 of x_train has values from 0 to 255; floats must lie in 0\.\.1"):
        from_arrays(x, Y)


@pytest.mark.parametrize("dtype", [np.int64, np.uint16, bool, complex])
def test_other_dtypes_are_refused(dtype: type) -> None:
    with pytest.raises(DataError, match=r"x_train has dtype \w+; give uint8 in 0\.\.255, or floats in 0\.\.1"):
        from_arrays(X.astype(dtype), Y)


@pytest.mark.parametrize("shape", [(12, 60), (12, 5, 4, 4), (12, 5, 4, 3, 1), (12,)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"x_train has shape \(12,.*give images \(N, H, W\)"):
        from_arrays(np.zeros(shape, np.uint8), Y)


def test_channels_first_gets_a_hint() -> None:
    with pytest.raises(DataError, match=r"channels come last: x\.transpose\(0, 2, 3, 1\)"):
        from_arrays(X.transpose(0, 3, 1, 2), Y)


def test_images_without_pixels_are_refused() -> None:
    with pytest.raises(DataError, match=r"at least one pixel high and wide"):
        from_arrays(np.zeros((12, 0, 4), np.uint8), Y)


def test_lengths_that_differ() -> None:
    with pytest.raises(DataError, match=r"x_train has 12 images but y_train has 11 labels; give one label per image"):
        from_arrays(X, Y[:11])
    with pytest.raises(DataError, match=r"x_test has 3 images but y_test has 2 labels"):
        from_arrays(X, Y, X[:3], Y[:2])
    with pytest.raises(DataError, match=r"x_train has 12 images but y_true has 2 labels"):
        from_arrays(X, Y, y_true=Y[:2])


def test_empty_set() -> None:
    with pytest.raises(DataError, match=r"there is nothing in x_train; give at least one image"):
        from_arrays(X[:0], Y[:0])


def test_single_class() -> None:
    with pytest.raises(DataError, match=r"y_train names a single class \(0\)"):
        from_arrays(X, np.zeros(12, int))


def test_single_class_among_many_named_ones() -> None:
    with pytest.raises(DataError, match=r"y_train names a single class"):
        from_arrays(X, np.zeros(12, int), classes=["a", "b"])


def test_label_outside_the_named_classes() -> None:
    with pytest.raises(DataError, match=r"y_train\[2\] is 2, which is none of the 2 classes \(0, 1\)"):
        from_arrays(X, Y, classes=["a", "b"])


def test_test_label_that_training_never_shows() -> None:
    with pytest.raises(DataError, match=r"y_test\[0\] is 9, which is none of the 3 classes"):
        from_arrays(X, Y, X[:1], [9])


def test_true_labels_do_not_add_classes() -> None:
    """Otherwise the size of the network would depend on the truth."""
    with pytest.raises(DataError, match=r"y_true\[0\] is 3, which is none of the 3 classes"):
        from_arrays(X, Y, y_true=Y + 3)


@pytest.mark.parametrize("given", ["x_test", "y_test"])
def test_half_a_test_split(given: str) -> None:
    other = "y_test" if given == "x_test" else "x_test"
    with pytest.raises(DataError, match=rf"{given} is given without {other}; give both or neither"):
        from_arrays(X, Y, **{given: X if given == "x_test" else Y})


def test_test_images_of_another_shape() -> None:
    with pytest.raises(DataError, match=r"x_test holds images of shape \(4, 4, 3\) but x_train of \(5, 4, 3\)"):
        from_arrays(X, Y, X[:, :4], Y)


@pytest.mark.parametrize("names", [("x_train", "y_train"), ("x", "y")])
def test_npz(tmp_path: Path, names: tuple[str, str]) -> None:
    path = npz(
        tmp_path,
        **{names[0]: X, names[1]: Y},
        x_test=X[:4],
        y_test=Y[:4],
        classes=np.array(["cat", "dog", "eel"]),
        y_train_true=Y[::-1],
        unrelated=np.ones(3),
    )
    data = load(Config(path=str(path)), None)
    assert data.name == "set"
    assert data.classes == ("cat", "dog", "eel")
    assert np.array_equal(data.train.images.fetch(np.arange(12)), X)
    assert data.train.y.tolist() == Y.tolist()
    assert data.test is not None
    assert len(data.test) == 4
    assert data.y_true is not None
    assert data.y_true.tolist() == Y[::-1].tolist()


def test_npz_is_found_in_the_data_folder(tmp_path: Path) -> None:
    npz(tmp_path, x=X, y=Y)
    assert len(load(Config(path="set.npz"), tmp_path).train) == 12


def test_npz_with_a_share_for_testing(tmp_path: Path) -> None:
    data = load(Config(path=str(npz(tmp_path, x=X, y=Y)), test_share=0.25), None)
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (9, 3)
    assert sorted(data.test.y.tolist()) == [0, 1, 2]


def test_missing_npz_names_every_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"set\.npz or .*set\.npz does not exist"):
        load(Config(path="set.npz"), tmp_path)


def test_empty_path() -> None:
    with pytest.raises(DataError, match=r"no path was given"):
        load(Config(path=""), None)


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.99])
def test_truncated_npz(tmp_path: Path, kept: float) -> None:
    path = npz(tmp_path, x=X, y=Y)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept if kept > 1 else kept * len(content))])
    with pytest.raises(
        DataError, match=r"set\.npz \([\d,]+ bytes\) is no \.npz archive or was cut short; copy it again"
    ):
        load(Config(path=str(path)), None)


def test_npz_with_damaged_pixels(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, x=X, y=Y)
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"set\.npz \([\d,]+ bytes\) is damaged at x \(.*CRC.*\); copy it again"):
        load(Config(path=str(path)), None)


def test_npz_with_objects_is_never_unpickled(tmp_path: Path) -> None:
    path = npz(tmp_path, x=X, y=np.array(["a", 1] * 6, dtype=object))
    with pytest.raises(DataError, match=r"set\.npz: y holds Python objects; store it as numbers or as strings"):
        load(Config(path=str(path)), None)


def test_npz_without_the_needed_arrays(tmp_path: Path) -> None:
    path = npz(tmp_path, x_train=X, y=Y)
    with pytest.raises(
        DataError, match=r"set\.npz has no array y_train \(it has: x_train, y\); store x_train and y_train"
    ):
        load(Config(path=str(path)), None)
    path = npz(tmp_path, images=X)
    with pytest.raises(DataError, match=r"set\.npz has no array x_train \(it has: nothing we know\)"):
        load(Config(path=str(path)), None)


def test_errors_of_an_npz_name_file_and_array(tmp_path: Path) -> None:
    path = npz(tmp_path, x=X, y=Y[:5])
    with pytest.raises(DataError, match=r"set\.npz: x has 12 images but .*set\.npz: y has 5 labels"):
        load(Config(path=str(path)), None)


def test_images_to_classify(tmp_path: Path) -> None:
    assert np.array_equal(read_images(npz(tmp_path, x=X)).pixels, X)
    assert np.array_equal(read_images(npz(tmp_path, x_train=X, x_test=X[:2])).pixels, X[:2])
    with pytest.raises(DataError, match=r"set\.npz has no array x \(it has: y\); store one"):
        read_images(npz(tmp_path, y=Y))
    with pytest.raises(DataError, match=r"nowhere\.npz does not exist"):
        read_images(tmp_path / "nowhere.npz")
