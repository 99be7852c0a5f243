"""Labels keep their type or are refused; images may be arrays or files."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from rte.data.files import FileImages
from rte.data.given import as_images, as_labels, encode
from rte.data.types import ArrayImages
from rte.errors import DataError


class Colour(Enum):
    RED = 1
    BLUE = 2


class Column:
    """As a column of a table is: no sequence, but an array for those who ask."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([1, 0, 1], [0, 1]),
        ((1, 0, 1), [0, 1]),
        (range(3), [0, 1, 2]),
        (np.array([3, 1, 3], np.uint8), [1, 3]),
        (np.array([3, 1, 3], object), [1, 3]),
        ([np.int32(3), 1, 3], [1, 3]),
        ([1.0, 2, 1], [1.0, 2.0]),
        ([True, False, True], [False, True]),
        (np.array([True, False]), [False, True]),
        (["b", "a", "b"], ["a", "b"]),
        ([np.str_("b"), "a"], ["a", "b"]),
        (np.array(["b", "a"], object), ["a", "b"]),
        (["1", "10", "2"], ["1", "10", "2"]),
        ([(1, "x"), (0, "y")], [(0, "y"), (1, "x")]),
        ([Colour.RED, Colour.BLUE], [Colour.RED, Colour.BLUE]),
        ([2**70, 1], [1, 2**70]),
        (torch.tensor([1, 0]), [0, 1]),
        (Column(["b", "a"]), ["a", "b"]),
        (np.array(["2024-01-02", "2024-01-01"], "M8[D]"), None),
    ],
)
def test_labels_keep_their_type(y: Any, classes: list[Any] | None) -> None:
    labels = as_labels(y)
    found, codes = encode(labels)
    given = [*np.asarray(y)] if classes is None or isinstance(y, torch.Tensor | Column) else list(y)
    assert found[codes].tolist() == np.array(given).tolist() if classes is None else [*found[codes]] == given
    if classes is not None:
        assert found.tolist() == classes
        assert [type(value) for value in found.tolist()] == [type(value) for value in classes]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, "a"], r"label 0 is 1 \(number\), label 1 is 'a' \(string\); make them all strings, or all numbers\.$"),
        (np.array([1, "a"], object), "different kinds"),
        ([True, 2], "truth value"),
        (["a", b"a"], "bytes"),
        ([1, (1, 2)], "tuple"),
        ([10, "ten", None], r"label 2 is missing \(None\)"),
        ([1.0, float("nan")], r"label 1 is missing \(nan\)"),
        (["a", float("nan")], r"label 1 is missing \(nan\)"),
        (np.array([1.0, np.nan]), "label 1 is nan; leave its image out"),
        (np.array([1.0, np.inf]), "label 1 is inf"),
        (np.array([np.datetime64("NaT"), np.datetime64("2024-01-01")]), "label 0 is NaT"),
        ([0.5, 1.0], r"label 0 is 0\.5, a measurement"),
        (np.ma.array([1, 2], mask=[0, 1]), "some labels are masked"),
        ([[1, 0], [0, 1]], r"shape \(2, 2\); .* one-hot rows, y\.argmax\(1\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array(3), r"shape \(\)"),
        ([[1, 2], [3]], "differ in length"),
        ([{1: 2}, {3: 4}], "cannot be told apart"),
        (None, "the target y is None"),
        ("abc", "a str; give a list"),
        ({1: 2}, "a dict; give a list"),
        (sparse.csr_matrix([[1, 0]]), "a csr_matrix; give a list"),
        ([1, 1, 1], "have 1 class"),
        ([], "have 0 class"),
    ],
)
def test_labels_that_are_refused(y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode(as_labels(y))


@pytest.mark.parametrize("y", [np.array([[1], [0]]), [[1], [0]], np.array([["a"], ["b"]], object)])
def test_a_column_is_taken_with_the_usual_warning(y: Any) -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert as_labels(y).shape == (2,)


def test_images_are_arrays_or_files(tmp_path: Path) -> None:
    for k, size in enumerate([(8, 8), (9, 12)]):
        Image.new("L", size, k).save(tmp_path / f"{k}.png")
    paths = sorted(tmp_path.iterdir())
    for given in (
        paths,
        [*map(str, paths)],
        tuple(paths),
        np.array([*map(str, paths)]),
        np.array(paths, object),
        Column(paths),
    ):
        found = as_images(given)
        assert isinstance(found, FileImages)
        assert (len(found), found.channels) == (2, 1)
    assert as_images(paths, channels=3).channels == 3
    for array in (np.zeros((2, 8, 8), np.uint8), [np.zeros((8, 8)), np.ones((8, 8))], np.zeros((2, 8, 8, 3)).tolist()):
        assert isinstance(as_images(array), ArrayImages)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (sparse.csr_matrix(np.eye(3)), "a sparse matrix"),
        ("a.png", "one path; give a list"),
        (Path("a.png"), "one path; give a list"),
        (["nosuch.png"], r"nosuch\.png"),
        ([np.zeros((8, 8)), np.zeros((9, 9))], "not all of one shape"),
        ([], "shape"),
        (None, "shape"),
        (np.zeros((2, 64)), "shape"),
        (np.zeros((2, 8, 8), bool), "dtype bool"),
        (np.zeros((2, 8, 8), np.int64), "dtype int64"),
        (np.full((2, 8, 8), 255.0), r"floats must lie in 0\.\.1"),
        (np.full((2, 8, 8), -0.1), r"floats must lie in 0\.\.1"),
        (np.full((2, 8, 8), np.nan), "NaN"),
    ],
)
def test_images_that_are_refused(x: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_images(x)
