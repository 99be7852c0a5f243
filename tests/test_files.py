"""Files that are either complete or not there, and what is refused before the work begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rte.errors import UserError
from rte.files import expanded, locked, read_json, refuse_folder, refuse_output, write_atomic, write_json


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("precious")
    for path, words in (
        (tmp_path / "missing" / "x", "missing does not exist"),
        (tmp_path / "file" / "x", "file is a file"),
        (tmp_path, "is a folder"),
        (tmp_path / "file", "exists already; choose another name, or add --overwrite"),
        (Path(os.devnull), "no ordinary file"),
    ):
        with pytest.raises(UserError, match=f"^--json .*{words}"):
            refuse_output(path, "--json", overwrite=False)
    refuse_output(tmp_path / "file", "--json", overwrite=True)
    refuse_output(tmp_path / "new", "--json", overwrite=False)
    with pytest.raises(UserError, match="no ordinary file"):
        refuse_output(Path(os.devnull), "--json", overwrite=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="cannot be written to"):
        refuse_output(tmp_path / "new", "--json", overwrite=False)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    refuse_folder(tmp_path / "a" / "b" / "c", "--out")
    with pytest.raises(UserError, match=r"^--out .*file/b: the folder .*file is a file"):
        refuse_folder(tmp_path / "file" / "b", "--out")
    monkeypatch.chdir(tmp_path)
    refuse_folder(Path("a"), "--out")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="cannot be written to"):
        refuse_folder(tmp_path / "a", "--out")


def test_a_write_into_a_file_taken_for_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Not a directory"):
        write_atomic(tmp_path / "file" / "x.json", lambda file: file.write(b"x"))


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match=r"cannot write .*x \(No space left on device\)"):
        write_atomic(path, fail)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]
    assert path.read_text() == "old"


def test_names_that_are_no_unicode_survive_json(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    write_json(tmp_path / "x.json", {name: "ä"})
    assert read_json(tmp_path / "x.json") == {name: "ä"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
        (b"\xff", "no text in UTF-8"),
        (100_000 * b"[", "no valid JSON"),
        (b'{"a": 1}\0\0', "no valid JSON"),
    ],
)
def test_json_that_cannot_be_read_says_why(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_json(tmp_path / "x.json")


def test_a_folder_in_place_of_a_json_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be read .Is a directory"):
        read_json(tmp_path)


def test_homes_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/x") == tmp_path / "x"
    with pytest.raises(UserError, match="the home folder of nobody"):
        expanded("~nouser/x")


HOLD = """
import sys, time
from pathlib import Path
from rte.files import locked

with locked(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_keeps_others_out_and_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="another process is working on the run; wait"), locked(path, "the run"):
            pass
        process.kill()
    for _ in range(2):
        with locked(path, "the run"):
            pass
    with pytest.raises(UserError, match=r"cannot write .*lock/x"), locked(path / "x", "the run"):
        pass
