"""Tables of numbers and categories as datasets: the target, the split, what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from rte.data.rows import TableRows
from rte.data.tabular import Config, load, read_rows
from rte.data.types import Dataset
from rte.errors import DataError

HEAD = "age,job,income,split\n"
LINES = ["30,clerk,low,train", "40,,high,train", "?,cook,low,test", "50,cook,high,train", "35,clerk,low,train"]


def table(folder: Path, text: str, name: str = "people.csv", **settings: object) -> Dataset:
    (folder / name).write_text(text, encoding="utf-8")
    return load(Config.model_validate({"path": str(folder / name), **settings}), None)


def label(name: str) -> dict[str, object]:
    return {"columns": {"label": name}}


def test_rows_labels_and_split(tmp_path: Path) -> None:
    data = table(tmp_path, HEAD + "\n".join(LINES))
    assert (data.name, data.classes) == ("people", ("high", "low"))
    assert data.train.y.tolist() == [1, 0, 0, 1]
    assert data.test is not None
    assert data.test.y.tolist() == [1]
    rows = data.train.images
    assert isinstance(rows, TableRows)
    assert [(column.name, column.kind) for column in rows.columns] == [("age", "number"), ("job", "category")]
    assert rows.columns[1].categories == ("", "clerk", "cook"), "those of the training rows"
    np.testing.assert_array_equal(rows.fetch(np.array([0, 1])), [[30, 1], [40, 0]])
    np.testing.assert_array_equal(data.test.images.fetch(np.array([0])), [[np.nan, 2]])
    assert data.train.images.label(3) == "row 4", "of the table"
    assert data.notes == (
        "the target is the column income (as no --target names one; the last one); 1 number (age); 1 category (job).",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,label,b\n1,x,2\n2,y,4\n3,x,9\n", "label"),
        ("a,Class,b\n1,x,2\n2,y,4\n3,x,9\n", "Class"),
        ("a,b,what\n1,5,x\n2,6,y\n3,8,x\n4,9,y\n", "what"),
        ("a,b,what\n1,5,0\n2,6,1\n3,8,0\n", "what"),
    ],
)
def test_the_target_is_guessed(tmp_path: Path, text: str, expected: str) -> None:
    assert f"the target is the column {expected} (as no --target" in table(tmp_path, text).notes[0]


def test_what_is_said_counts_and_other_endings_do(tmp_path: Path) -> None:
    text = "letter,x,y\nT,2,8\nI,5,12\nT,3,9\n"
    data = table(tmp_path, text, **label("letter"))
    assert data.notes[0].startswith("the target is the column letter; ")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.replace(",", "\t").encode()))
    again = load(Config.model_validate({"path": str(tmp_path / "a.csv.gz"), **label("letter")}), None)
    np.testing.assert_array_equal(again.train.images.fetch(np.arange(3)), data.train.images.fetch(np.arange(3)))


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"age": [30, None, 41, 52], "job": ["a", "b", None, "a"], "label": ["x", "y", "x", "y"]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    data = load(Config(path=str(tmp_path / "t.parquet")), None)
    np.testing.assert_array_equal(data.train.images.fetch(np.arange(3)), [[30, 1], [np.nan, 2], [41, 0]])


def test_true_labels_are_for_scoring(tmp_path: Path) -> None:
    text = "a,label,true_label,split\n1,x,y,train\n2,y,y,train\n3,x,y,test\n"
    data = table(tmp_path, text)
    assert data.y_true is not None
    assert (data.train.y.tolist(), data.y_true.tolist()) == ([0, 1], [1, 1])
    assert data.test is not None
    assert data.test.y.tolist() == [1]
    rows = data.train.images
    assert isinstance(rows, TableRows)
    assert [column.name for column in rows.columns] == ["a"]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a,b\n1,2\n", label("c"), "has no column 'c' .for label.; choose one of: a, b"),
        ("a,b\n1,2\n2,3\n", {"ignore": ["bb"]}, "data.ignore: .* has no column 'bb'; did you mean 'b'"),
        ("a,b\n1,x\n2,y\n", {"ignore": ["b"], **label("b")}, "data.ignore names b, which is the target"),
        (
            "a,b,label\n1,x,u\n2,y,v\n",
            {"numbers": ["a"], "categories": ["a"]},
            "a is named as a number and as a category",
        ),
        ("a,b\n1,x\n2,\n3,y\n", label("b"), "line 3 of .* has an empty b; add --skip-bad"),
        ("a,label\n7,x\n7,y\n", {}, r"has no column to learn label from \(a: it never varies\)"),
        ("a,b\n" + "".join(f"{i % 3},{i}.5\n" for i in range(30)), label("b"), "holds measurements, such as 0.5"),
        ("a,b\n" + "".join(f"{i % 3},{i}\n" for i in range(30)), {}, "does not say which of its columns is the target"),
        (
            "a,label,split\n1,x,train\n2,y,train\n3,z,test\n",
            {},
            "label in line 4 of .* is z, which is none of the 2 classes",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        table(tmp_path, text, **settings)


def test_a_new_table_is_read_by_the_columns_of_the_old_one(tmp_path: Path) -> None:
    rows = table(tmp_path, HEAD + "\n".join(LINES)).train.images
    assert isinstance(rows, TableRows)
    (tmp_path / "new.csv").write_text("job,more,age\ncook,1,33\npilot,1,\n")
    new = read_rows(tmp_path / "new.csv", rows.columns)
    np.testing.assert_array_equal(new.values, [[33, 2], [np.nan, np.nan]])
