"""Where datasets are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rte.data._places import default_folder, find, required
from rte.errors import DataError, UserError


def test_no_data_folder_says_all_three_remedies() -> None:
    with pytest.raises(DataError, match=r"cifar10 needs a data folder; pass --data-dir DIR or set RTE_DATA;.*get it\."):
        required(None, "cifar10", "get it.")


def test_absent_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist.*to get cifar100, get it\."):
        required(tmp_path / "nowhere", "cifar100", "get it.")


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if default_folder().parent != tmp_path:
        pytest.skip("this platform keeps data elsewhere")
    return default_folder()


def test_without_a_data_folder_the_default_one_is_searched(default: Path) -> None:
    assert default.name == "rte"
    with pytest.raises(DataError, match="needs a data folder"):
        required(None, "cifar10", "get it.")
    with pytest.raises(DataError, match=r"^x\.npz does not exist"):
        find("x.npz", None, folder=False)
    default.mkdir()
    (default / "x.npz").touch()
    assert required(None, "cifar10", "get it.") == default
    assert find("x.npz", None, folder=False) == default / "x.npz"
    assert required(default.parent, "cifar10", "get it.") == default.parent


@pytest.mark.parametrize("path", ["~nouser/x.npz", "~nouser"])
def test_the_home_of_nobody_is_one_sentence(path: str) -> None:
    with pytest.raises(UserError, match=f"{path} names the home folder of nobody"):
        find(path, None, folder=False)
    with pytest.raises(UserError, match="the home folder of nobody"):
        required(Path(path), "cifar10", "get it.")


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
