"""Labels of any kind become 0..K-1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rte.data._labels import as_labels, class_values, encode, named_values
from rte.errors import DataError


def place(i: int) -> str:
    return f"y[{i}]"


@given(st.lists(st.integers(-(10**12), 10**12), min_size=2, max_size=40).filter(lambda y: len(set(y)) > 1))
def test_encoding_integers_is_what_a_sorted_list_says(y: list[int]) -> None:
    labels = as_labels(y, "y")
    codes = encode(labels, class_values(labels, "y"), place)
    assert codes.dtype == np.int64
    assert codes.tolist() == [sorted(set(y)).index(value) for value in y]


@given(st.lists(st.text("abcé ", min_size=1, max_size=4), min_size=2, max_size=40).filter(lambda y: len(set(y)) > 1))
def test_encoding_strings_is_what_a_sorted_list_says(y: list[str]) -> None:
    labels = as_labels(y, "y")
    codes = encode(labels, class_values(labels, "y"), place)
    assert codes.tolist() == [sorted(set(y)).index(value) for value in y]


def test_strings_that_are_integers_sort_by_value() -> None:
    assert class_values(np.array(["10", "9", "-1"]), "y").tolist() == ["-1", "9", "10"]


def test_strings_that_only_look_like_integers_sort_as_text() -> None:
    assert class_values(np.array(["7", "07", "10"]), "y").tolist() == ["07", "10", "7"]


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.array([3, 5], dtype=np.uint8), "u"),
        (np.array(["a", "b"], dtype=object), "U"),
        (np.array([1, 2], dtype=object), "i"),
        (np.array([b"a", b"b"]), "U"),
        ([True, False], "i"),
    ],
)
def test_kinds_that_are_accepted(y: Any, kind: str) -> None:
    assert as_labels(y, "y").dtype.kind == kind


@pytest.mark.parametrize("y", [[0.5, 1.0], [np.nan, 1.0], np.array([1, "a"], dtype=object), [None, 1]])
def test_other_kinds_are_refused_by_field(y: Any) -> None:
    with pytest.raises(DataError, match=r"y_train has dtype .*; labels must be all integers or all strings"):
        as_labels(y, "y_train")


def test_one_hot_labels_are_refused_with_their_shape() -> None:
    with pytest.raises(DataError, match=r"y_train has shape \(4, 3\); give one label per image, shape \(N,\)"):
        as_labels(np.zeros((4, 3), int), "y_train")


def test_a_single_class_is_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"y_train names a single class \(cat\).*at least two"):
        class_values(np.array(["cat", "cat"]), "y_train")


def test_a_strange_label_is_named_with_its_place_and_the_classes() -> None:
    with pytest.raises(DataError, match=r"y\[1\] is 7, which is none of the 3 classes \(0, 1, 2\); correct the label"):
        encode(np.array([0, 7]), np.arange(3), place)


def test_strange_labels_beyond_either_end() -> None:
    for strange in (-1, 3):
        with pytest.raises(DataError, match=rf"y\[0\] is {strange}"):
            encode(np.array([strange]), np.arange(3), place)


def test_many_classes_are_listed_briefly() -> None:
    with pytest.raises(DataError, match=r"100 classes \(0, 1, 2, 3, 4, 5, …, 99\)"):
        encode(np.array([100]), np.arange(100), place)


def test_strings_among_integers_are_refused() -> None:
    with pytest.raises(DataError, match=r"y\[0\] is a string but the classes are integers"):
        encode(np.array(["a"]), np.arange(3), place)


def test_names_in_the_order_the_user_gave() -> None:
    y = np.array(["dog", "cat"])
    values = named_values(["dog", "cat", "eel"], y, "classes")
    assert encode(y, values, place).tolist() == [0, 1]


def test_integer_labels_are_positions_among_named_classes() -> None:
    y = np.array([2, 0])
    assert encode(y, named_values(["dog", "cat", "eel"], y, "classes"), place).tolist() == [2, 0]


def test_integer_classes_are_values() -> None:
    y = np.array([30, 10])
    assert encode(y, named_values([10, 20, 30], y, "classes"), place).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("classes", "message"),
    [(["a", "a"], "classes names a class twice"), (["a"], "classes names 1 class"), ([1, 2], "the labels are strings")],
)
def test_class_lists_that_cannot_be(classes: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        named_values(classes, np.array(["a", "b"]), "classes")
