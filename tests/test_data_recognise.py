"""What the user points at becomes the data section of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photos import photo, text

from rte import registry
from rte.data.recognise import recognise
from rte.errors import DataError

KNOWN = ("arrays", "cifar10", "digits", "folder", "hf", "table", "vectors")


def test_the_kinds_that_are_meant_exist() -> None:
    assert set(KNOWN) <= set(registry.datasets())


def test_names_and_prefixes_count_before_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    photo(tmp_path / "digits" / "a" / "1.png")
    assert recognise("digits", KNOWN) == {"name": "digits"}
    assert recognise("./digits", KNOWN) == {"name": "folder", "path": "./digits"}
    assert recognise("table:any thing", KNOWN) == {"name": "table", "path": "any thing"}


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo(tmp_path / "data" / 'a "b" \N{WINKING FACE}' / "cat" / "1.png")
    path = 'a "b" \N{WINKING FACE}'
    assert recognise(path, KNOWN, tmp_path / "data") == {"name": "folder", "path": path}
    text(tmp_path / "saved" / "dataset_dict.json", "{}")
    assert recognise(str(tmp_path / "saved"), KNOWN)["name"] == "hf"


def test_archives_by_the_shape_of_their_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", x=np.zeros((3, 5)), y=np.arange(3))
    np.savez(tmp_path / "i.npz", x_train=np.zeros((3, 5, 5)), y_train=np.arange(3))
    np.save(tmp_path / "x.npy", np.zeros((3, 5)))
    for name, kind in (("v.npz", "vectors"), ("i.npz", "arrays"), ("x.npy", "vectors")):
        assert recognise(str(tmp_path / name), KNOWN)["name"] == kind


def test_tables_by_their_columns(tmp_path: Path) -> None:
    photo(tmp_path / "img" / "no ending")
    for name, lines in {
        "a.csv": ("shot,what", "img/1.JPG,cat"),
        "b.tsv": ("file\tlabel", "img/no ending\tcat"),
        "c.csv": ("a,path", "1,x"),
    }.items():
        table = text(tmp_path / name, *lines)
        if name != "c.csv":
            assert recognise(str(table), KNOWN)["name"] == "table"
    assert recognise(str(table), KNOWN, columns={"path": "path"})["name"] == "table", "as the user says"
    with pytest.raises(DataError, match=r"c\.csv has no column 'pat' \(for path\); did you mean 'path'"):
        recognise(str(table), KNOWN, columns={"path": "pat"})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifr10", "there is no dataset 'cifr10', and no file or folder of that name here; did you mean 'cifar10'"),
        ("photos/", "photos/ does not exist; give a folder"),
        ("1.png", "is a single image; give the folder above it"),
        ("1.pdf", r"1\.pdf is of no kind that can be read"),
        ("", "there is no dataset ''"),
        ("x" * 5000, "there is no dataset"),
        ("a\0b", "there is no dataset"),
    ],
)
def test_what_cannot_be_meant(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    photo(tmp_path / "1.png")
    text(tmp_path / "1.pdf", "%PDF")
    with pytest.raises(DataError, match=message):
        recognise(name, KNOWN)
