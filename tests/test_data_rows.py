"""Columns are numbers or categories by their values, and rows become numbers by the columns of the training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rte.data.rows import Cells, Column, as_categories, frame_rows, is_mixed, learn_columns, to_values
from rte.errors import DataError

N = 40
COLOUR = ["red", "blue", "", "blue"] * 10


def kinds(cells: dict[str, Cells], **named: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    columns, left = learn_columns(cells, **named)
    return {column.name: column.kind for column in columns}, left


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([str(i % 7 - 3) for i in range(N)], "number"),
        (["1e-3", "2.5", "?", "NA"] * 10, "number"),
        (COLOUR, "category"),
        (["07030", "10001"] * 20, "category"),
        (["1", "2", "many", "2"] * 10, "category"),
        (["true", "false"] * 20, "category"),
        (["", "x"] * 20, "category"),
    ],
)
def test_the_kind_is_guessed(values: list[str], kind: str) -> None:
    assert kinds({"a": values}) == ({"a": kind}, {})


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("a", ["7"] * N, "it never varies"),
        ("a", ["x"] * N, "it never varies"),
        ("a", [""] * N, "it is empty"),
        ("Id", [str(i) for i in range(N)], "it numbers the rows"),
        ("a", [f"name {i}" for i in range(N)], "it names the rows"),
        ("a", [f"word {i % 101} and {i % 79} some more" for i in range(150)], "it is free text, see --text"),
    ],
)
def test_what_teaches_nothing_is_left_out(name: str, values: list[str], reason: str) -> None:
    assert kinds({name: values, "b": COLOUR * (len(values) // N)}) == ({"b": "category"}, {name: reason})


def test_what_the_user_says_counts() -> None:
    digits = [str(i % 4) for i in range(N)]
    assert kinds({"a": digits}, categories=["a"])[0] == {"a": "category"}
    assert kinds({"id": [str(i) for i in range(N)]}, numbers=["id"])[0] == {"id": "number"}
    with pytest.raises(DataError, match="a of training row 2 is 'x', and the column holds numbers; correct it"):
        learn_columns({"a": ["1", "2", "x", "3"]}, numbers=["a"])


def test_rows_become_numbers() -> None:
    cells = {"size": ["1", "?", "2.5", "4"] * 10, "colour": COLOUR}
    columns, _ = learn_columns(cells)
    assert columns[0] == Column("size", "number", missing=True)
    assert columns[1] == Column("colour", "category", ("", "blue", "red"), missing=True)
    values = to_values(columns, cells, "x.csv", str)[:4]
    np.testing.assert_array_equal(values, [[1, 2], [np.nan, 1], [2.5, 0], [4, 1]])
    new = to_values(columns, {"extra": ["1"], "colour": ["green"], "size": ["7"]}, "x.csv", str)
    np.testing.assert_array_equal(new, [[7, np.nan]]), "green was never seen"


def test_rare_categories_count_as_unknown() -> None:
    columns, _ = learn_columns({"a": ["x", "y"] * 60 + ["once"]})
    assert columns[0].categories == ("x", "y")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"colour": COLOUR, "sise": ["1"]},
            "x.csv has no column 'size', which the model was trained on; did you mean 'sise'",
        ),
        ({"colour": ["red"], "size": ["big"]}, "size of line 0 is 'big', and the column holds numbers; correct it"),
        ({"colour": ["red"], "size": ["inf"]}, "size of line 0 is infinite"),
    ],
)
def test_what_does_not_fit_is_named(cells: dict[str, Cells], message: str) -> None:
    columns = (Column("size", "number"), Column("colour", "category", ("blue", "red")))
    with pytest.raises(DataError, match=message):
        to_values(columns, cells, "x.csv", lambda i: f"line {i}")


def test_numbers_as_categories_have_no_decimal_point() -> None:
    assert as_categories(np.array([1.0, np.nan, 2.5])) == ["1", "", "2.5"]


def test_a_frame() -> None:
    frame = pd.DataFrame(
        {
            "n": [1.5, np.nan, 3.0, 2.0],
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "word": ["a", None, "b", "a"],
            "flag": [True, False, True, True],
            "code": pd.Categorical([3, 3, 4, 4]),
        }
    )
    assert is_mixed(frame)
    assert not is_mixed(frame[["n"]].fillna(0))
    rows = frame_rows(frame)
    assert [column.kind for column in rows.columns] == ["number", "number", "category", "category", "category"]
    assert rows.columns[4].categories == ("3", "4")
    again = frame_rows(frame.iloc[::-1][["code", "flag", "word", "whole", "n"]], rows.columns)
    np.testing.assert_array_equal(again.values, rows.values[::-1])
    np.testing.assert_array_equal(
        rows.take(np.array([3, 1])).take(np.array([1])).fetch(np.array([0])), rows.values[[1]]
    )
    assert rows.take(np.array([3, 1])).label(1) == "row 1"
