"""Images listed in a table."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rte.data._roles import Roles
from rte.data._useless import LeftOut
from rte.data.table import Config, load
from rte.data.types import Dataset
from rte.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "img").mkdir()
    for k in range(6):
        Image.new("RGB", (4, 3), (k, 0, 0)).save(tmp_path / "img" / f"{k}.png")
    return tmp_path


def read(folder: Path, text: str, name: str = "list.csv", **settings: object) -> Dataset:
    (folder / name).write_bytes(text.encode())
    return load(Config(path=str(folder / name), **settings), None)


def lines(*rows: str, head: str = "path,label") -> str:
    return "\n".join([head, *rows]) + "\n"


FOUR = ("img/0.png,dog", "img/1.png,cat", "img/2.png,dog", "img/3.png,cat")


def first_pixels(data: Dataset) -> list[int]:
    return [int(image[0, 0, 0]) for image in data.train.images.fetch(np.arange(len(data.train)))]


def test_rows_in_order_with_sorted_classes(folder: Path) -> None:
    data = read(folder, lines(*FOUR))
    assert data.name == "list"
    assert data.classes == ("cat", "dog")
    assert data.train.y.tolist() == [1, 0, 1, 0]
    assert first_pixels(data) == [0, 1, 2, 3]
    assert data.test is None
    assert data.y_true is None


@pytest.mark.parametrize(("name", "separator"), [("a.tsv", "\t"), ("a.csv", ";"), ("a.txt", ",")])
def test_separators(folder: Path, name: str, separator: str) -> None:
    data = read(folder, lines(*FOUR).replace(",", separator), name)
    assert data.train.y.tolist() == [1, 0, 1, 0]


def test_byte_order_mark_windows_lines_blank_lines_spaces_quotes_and_other_columns(folder: Path) -> None:
    text = '\ufeffLabel, path ,note\r\n"a, b",img/0.png,x\r\n\r\n c ,img/1.png,\r\n'
    data = read(folder, text)
    assert data.classes == ("a, b", "c")
    assert first_pixels(data) == [0, 1]


def test_integer_labels_sort_by_value(folder: Path) -> None:
    data = read(folder, lines("img/0.png,10", "img/1.png,9", "img/2.png,2"))
    assert data.classes == ("2", "9", "10")
    assert data.train.y.tolist() == [2, 1, 0]


def test_absolute_paths(folder: Path) -> None:
    data = read(folder, lines(f"{folder}/img/4.png,a", "img/5.png,b"))
    assert first_pixels(data) == [4, 5]


def test_split_and_true_label(folder: Path) -> None:
    text = lines(
        "img/0.png,a,train,b",
        "img/1.png,b,test,a",
        "img/2.png,b,TRAIN,b",
        "img/3.png,b,test,",
        head="path,label,split,true_label",
    )
    data = read(folder, text)
    assert data.train.y.tolist() == [0, 1]
    assert data.y_true is not None
    assert data.y_true.tolist() == [1, 1]
    assert data.test is not None
    assert data.test.y.tolist() == [0, 1]  # the truth where the table has it, else the given label
    assert data.test.images.label(0).endswith("1.png")


def test_test_share(folder: Path) -> None:
    data = read(folder, lines(*FOUR), test_share=0.5)
    assert data.test is not None
    assert sorted(data.test.y.tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"list\.csv begins with an empty line; its first line must name the columns, such as path and label"),
        ("path,label\n", r"list\.csv lists no training images"),
        ("a,b\n1,2\n", r"list\.csv does not say which of its columns is the path \(it has: a, b\); name it with --col"),
        ("path,a,b\nimg/0.png,1,2\n", r"does not say which of its columns is the label \(it has: path, a, b\)"),
        ("path,label,label\nimg/0.png,a,b\n", r"list\.csv names a column twice"),
        (
            lines("img/0.png,a", "~nouser/x.png,b"),
            r"line 3 of .*list\.csv names .*~nouser/x\.png, which does not",
        ),
        (lines("img/0.png,a", "img/9.png,b"), r"line 3 of .*list\.csv names .*img/9\.png, which does not exist"),
        (lines("img/0.png,a", "", "img/1.png"), r"line 4 of .*list\.csv has 1 fields but there are 2 columns"),
        (lines("img/0.png,a,b"), r"line 2 of .*list\.csv has 3 fields but there are 2 columns"),
        (lines("img/0.png,"), r"line 2 of .*list\.csv has an empty label; add --skip-bad"),
        (lines(",a"), r"line 2 of .*list\.csv has an empty path"),
        (lines("img/0.png,a", "img/1.png,a"), r"the column label of .*list\.csv names a single class \(a\)"),
        (lines('"img/0.png,a'), r"list\.csv cannot be read after line 1 \(.*\); check its quotation marks"),
        (
            lines("img/0.png,a,tran", head="path,label,split"),
            r"line 2 of .*list\.csv has the split 'tran'; did you mean 'train'\?",
        ),
        (
            lines("img/0.png,a,train", "img/1.png,b,train", "img/2.png,c,test", head="path,label,split"),
            r"the label in line 4 of .*list\.csv is c, which is none of the 2 classes \(a, b\)",
        ),
        (
            lines("img/0.png,a,a", "img/1.png,b,", head="path,label,true_label"),
            r"line 3 of .*list\.csv has no true_label but other lines have; give all of them or none",
        ),
        (
            lines("img/0.png,a,a", "img/1.png,b,z", head="path,label,true_label"),
            r"the label in line 3 of .*list\.csv is z, which is none of the 2 classes",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(folder, text)


def test_text_that_is_not_utf8(folder: Path) -> None:
    (folder / "list.csv").write_bytes(b"path,label\nimg/0.png,caf\xe9\n")
    with pytest.raises(DataError, match=r"list\.csv is not UTF-8 text .*; save it as UTF-8"):
        load(Config(path=str(folder / "list.csv")), None)


def test_absent_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"list\.csv does not exist; give the path of a file"):
        load(Config(path=str(tmp_path / "list.csv")), None)


def test_a_file_under_two_labels_or_in_both_splits_is_refused(folder: Path) -> None:
    (folder / "img" / "link.png").symlink_to(folder / "img" / "0.png")
    for again in ("img/0.png", "img/../img/0.png", "img/link.png"):
        with pytest.raises(DataError, match=r"has the label 'dog' in line 2 of .* and 'cat' in line 6; keep one"):
            read(folder, lines(*FOUR, f"{again},cat"))
    with pytest.raises(DataError, match=r"is listed for train in line 2 of .* and for test in line 5; keep one"):
        read(folder, lines("img/0.png,dog,train", "img/1.png,cat,train", "img/2.png,cat,test", "img/0.png,dog,test",
                           head="path,label,split"))  # fmt: skip
    assert len(read(folder, lines(*FOUR, "img/0.png,dog")).train) == 5, "the same line twice is a weight"


def test_columns_are_found_by_their_names_and_values(folder: Path) -> None:
    head = "id,photo of it,Species"
    data = read(folder, lines("1,img/0.png,dog", "2,img/1.png,cat", "3,img/2.png,dog", "4,img/3.png,cat", head=head),
                columns=Roles(label="species"))  # fmt: skip
    assert (data.classes, data.train.y.tolist()) == (("cat", "dog"), [1, 0, 1, 0])
    assert read(folder, lines(*FOUR, head="filename,kind")).classes == ("cat", "dog"), "two columns explain each other"
    with pytest.raises(DataError, match=r"list\.csv has no column 'specis' \(for label\); did you mean 'Species'\?"):
        read(folder, lines("1,img/0.png,dog", head=head), columns=Roles(label="specis"))


def test_validation_rows_are_tested_on_where_none_is_for_the_test(folder: Path) -> None:
    rows = ("img/0.png,dog,train", "img/1.png,cat,train", "img/2.png,cat,val")
    data = read(folder, lines(*rows, head="path,label,split"))
    assert data.test is not None
    assert len(data.test) == 1
    data = read(folder, lines(*rows, "img/3.png,dog,test", "img/4.png,dog,test", head="path,label,split"))
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (2, 2)


def test_what_cannot_be_used_is_named_and_counted_or_left_out(folder: Path) -> None:
    text = lines(*FOUR, "img/4.png,", "img/9.png,dog", "img/8.png,cat", ",cat", "img/5.png,fox")
    with pytest.raises(DataError, match=r"line 9 of .* has an empty path; add --skip-bad"):
        read(folder, text)
    with pytest.warns(LeftOut) as said:
        data = read(folder, text, skip_bad=True, classes=("cat", "dog"))
    assert [str(one.message).split(" and are")[0] for one in said] == [
        "1 of 9 examples name no file", "1 of 8 examples have no label",
        "2 of 7 examples name files that do not exist", "1 of 5 examples have a label that is no class",
    ]  # fmt: skip
    assert (data.classes, data.train.y.tolist()) == (("cat", "dog"), [1, 0, 1, 0])
    with pytest.raises(DataError, match=r"img/9\.png, which does not exist, and 1 of 5 others name files that"):
        read(folder, lines("img/0.png,a", "img/9.png,b", "img/8.png,b", "img/1.png,b", "img/2.png,b"))
    with (
        pytest.warns(LeftOut),
        pytest.raises(DataError, match="no example is left: all 1 name files that do not exist"),
    ):
        read(folder, lines("img/9.png,a"), skip_bad=True)


def test_groups_stay_together(folder: Path) -> None:
    rows = [f"img/{k}.png,{'ab'[k % 2]},{k // 2}" for k in range(6)]
    data = read(folder, lines(*rows, head="path,label,patient"), columns=Roles(group="patient"), test_share=0.34)
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (4, 2)
    assert data.groups is not None
    assert len(np.unique(data.groups)) == 2


def test_parquet(folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"file": [f"img/{k}.png" for k in range(4)], "label": ["b", "a", None, "a"], "more": [[1]] * 4}
    parquet.write_table(pyarrow.table(columns), folder / "list.parquet")
    with pytest.warns(LeftOut, match=r"1 of 4 examples have no label .*: row 3 of .*list\.parquet has an empty label"):
        data = load(Config(path=str(folder / "list.parquet"), skip_bad=True), None)
    assert data.train.y.tolist() == [1, 0, 0]
    (folder / "list.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"list\.parquet cannot be read as Parquet"):
        load(Config(path=str(folder / "list.parquet")), None)


def test_gzip_and_names_with_spaces_quotes_and_emoji(folder: Path) -> None:
    strange = 'a "b", \N{WINKING FACE}.png'
    (folder / "img" / "0.png").rename(folder / "img" / strange)
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["path", "label"], [f"img/{strange}", "x, y"], ["img/1.png", "z"]])
    (folder / "list.csv.gz").write_bytes(gzip.compress(buffer.getvalue().encode()))
    data = load(Config(path=str(folder / "list.csv.gz")), None)
    assert data.classes == ("x, y", "z")
    assert first_pixels(data) == [0, 1]
