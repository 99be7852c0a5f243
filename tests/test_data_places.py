"""Where datasets are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rte.data._places import find, required
from rte.errors import DataError


def test_no_data_folder_says_all_three_remedies() -> None:
    with pytest.raises(DataError, match=r"--data-dir DIR or set RTE_DATA .*`rte data get cifar10 --to DIR`"):
        required(None, "cifar10")


def test_absent_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist.*rte data get cifar100 --to .*nowhere"):
        required(tmp_path / "nowhere", "cifar100")


def test_here_comes_before_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, data = tmp_path / "here", tmp_path / "data"
    for folder in (here, data):
        folder.mkdir()
        (folder / "a.txt").touch()
    (data / "b.txt").touch()
    monkeypatch.chdir(here)
    assert find("a.txt", data, folder=False) == Path("a.txt")
    assert find("b.txt", data, folder=False) == data / "b.txt"


def test_file_where_a_folder_is_wanted_and_the_reverse(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file is a file; give the path of a folder"):
        find(str(tmp_path / "file"), None, folder=True)
    with pytest.raises(DataError, match=r"is a folder; give the path of a file"):
        find(str(tmp_path), None, folder=False)
