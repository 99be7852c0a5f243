"""A table of ids and labels that counts instead of what the data says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photos import contents, photo, text

from rte.data import arrays, folder, vectors
from rte.data._useless import LeftOut
from rte.data.ids import cell
from rte.data.types import Dataset
from rte.errors import DataError


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for k, name in enumerate(("a/1.png", "a/2.png", "b/1.png", "b/3.png")):
        photo(tmp_path / "photos" / name, k)
    return tmp_path


def load(root: Path, *lines: str, **settings: object) -> Dataset:
    file = text(root / "labels.csv", *lines)
    return folder.load(folder.Config(path=str(root / "photos"), labels=str(file), **settings), None)


def test_ids_are_paths_or_what_is_left_of_them_if_that_is_clear(photos: Path) -> None:
    data = load(photos, "id,label", "a/1.png,cat", "b/1.png,dog", "2.png,dog", "3,'-cat")
    assert data.classes == ("-cat", "cat", "dog")
    assert contents(data.train) == [(0, 1), (1, 2), (2, 2), (3, 0)]


def test_what_is_not_in_the_file_is_left_out_and_counted(photos: Path) -> None:
    with pytest.warns(LeftOut, match=r"2 of 4 examples are not in .*labels\.csv and are left out; the first is a/2\.p"):
        data = load(photos, "id,label", "a/1.png,cat", "b/1.png,dog")
    assert contents(data.train) == [(0, 0), (2, 1)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("id,label", "1.png,x", "a/1.png,y"), r"line 2 of .*labels\.csv names '1\.png', which is not there; add --sk"),
        (("id,label", "a/1.png,", "b/1.png,x"), r"line 2 of .* has an empty label; add --skip-bad"),
        (("id,label", "a/1.png,x", "a/1.png,y"), r"line 2 of .* and line 3 of .* give one example two labels"),
        (("id,label", "a/1.png,x", "a/2.png,x", "b/1.png,x", "b/3.png,x"), "names a single class"),
        (("name,what,why", "a/1.png,x,y"), "does not say which of its columns is the label"),
    ],
)
def test_mistakes(photos: Path, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(photos, *lines)


def test_bad_rows_are_left_out_on_request(photos: Path) -> None:
    with pytest.warns(LeftOut) as said:
        data = load(photos, "id,label", "a/1.png,x", "a/2.png,", "b/1.png,y", "c/1.png,y", skip_bad=True)
    assert len(said) == 3
    assert contents(data.train) == [(0, 0), (2, 1)]


def test_tested_images_keep_their_folders_unless_the_file_names_them(tmp_path: Path) -> None:
    for k, name in enumerate(("train/a/1.png", "train/b/2.png", "test/a/3.png", "test/b/4.png")):
        photo(tmp_path / "photos" / name, k)
    with pytest.warns(LeftOut):
        data = load(tmp_path, "id,label", "train/a/1.png,b", "train/b/2.png,a")
    assert (contents(data.train), contents(data.test)) == ([(0, 1), (1, 0)], [(2, 0), (3, 1)])
    data = load(tmp_path, "id,label", *(f"{name},{label}" for name, label in zip("1234", "abba", strict=True)))
    assert (contents(data.train), contents(data.test)) == ([(0, 0), (1, 1)], [(2, 1), (3, 0)])
    data = load(tmp_path, "id,label,split", "1,a,test", "2,b,train", "3,a,train", "4,b,train")
    assert contents(data.test) == [(0, 0)]


def test_groups_of_the_file_and_of_an_expression(photos: Path) -> None:
    lines = ("id,label,patient", "a/1.png,x,p", "a/2.png,y,q", "b/1.png,x,q", "b/3.png,y,")
    data = load(
        photos, *lines, columns=folder.Config.model_fields["columns"].default.model_copy(update={"group": "patient"})
    )
    assert data.groups is not None
    assert data.groups.tolist() == [0, 1, 1, 2]
    data = folder.load(folder.Config(path=str(photos / "photos"), group=r"(\d)\.png"), None)
    assert data.groups is not None
    assert data.groups.tolist() == [0, 1, 0, 2]


def test_numbers_are_the_ids_of_arrays_and_vectors(tmp_path: Path) -> None:
    x, y = np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2), np.array(list("aabbcc"))
    file = text(tmp_path / "labels.csv", "id,label", *(f"{i},{label}" for i, label in enumerate("bbaabb")))
    np.savez(tmp_path / "x.npz", x=x, y=y, y_train_true=y)
    data = arrays.load(arrays.Config(path=str(tmp_path / "x.npz"), labels=str(file)), None)
    assert (data.classes, data.train.y.tolist()) == (("a", "b", "c"), [1, 1, 0, 0, 1, 1])
    assert data.y_true is not None
    assert data.y_true.tolist() == [0, 0, 1, 1, 2, 2]
    np.save(tmp_path / "v.npy", x.reshape(6, 4).astype(np.float32))
    data = vectors.load(vectors.Config(path=str(tmp_path / "v.npy"), labels=str(file)), None)
    assert (data.classes, data.train.y.tolist()) == (("a", "b"), [1, 1, 0, 0, 1, 1])


def test_a_spreadsheets_apostrophe_is_taken_away(photos: Path) -> None:
    photo(photos / "photos" / "a" / "=1.png", 9)
    (photos / "photos" / "a" / "=1.png").rename(photos / "photos" / "=1.png")
    with pytest.warns(LeftOut):
        data = load(photos, "id,label", f"{cell('=1.png')},{cell('+x')}", "2.png,y")
    assert contents(data.train) == [(9, 0), (1, 1)]
    assert data.classes == ("+x", "y")
