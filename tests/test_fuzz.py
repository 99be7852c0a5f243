"""Malformed files: a few of every kind, and all that were findings once."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import Reader, changed, findings, readers, tried

ALL = {reader.file: reader for reader in readers()}
FOUND: dict[str, list[bytes]] = {
    "v.npy": [b"\x93NUMPY\x01\x00\x10\x00{'descr': (\n     \n"],  # tokenize.TokenError of NumPy's header parser
}
"""By reader, contents that once ended in a traceback."""


@pytest.mark.parametrize("name", ALL)
def test_a_good_file_is_taken(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(ALL[name].good)
    if name in ("t.csv", "w.safetensors", "s.json"):  # good in form; what they name is not there
        assert tried(ALL[name], ALL[name].good, tmp_path / "place") is None
    else:
        ALL[name].read(path)


@pytest.mark.parametrize("name", ALL)
def test_malformed_files_are_taken_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    assert list(findings(ALL[name], 60, tmp_path)) == []


@pytest.mark.parametrize(("name", "number"), [(name, k) for name, list_ in FOUND.items() for k in range(len(list_))])
def test_what_was_a_finding_once_is_none_any_more(name: str, number: int, tmp_path: Path) -> None:
    assert tried(ALL[name], FOUND[name][number], tmp_path) is None


def test_a_reader_that_breaks_is_found(tmp_path: Path) -> None:
    broken = Reader("x.txt", lambda path: path.read_text(encoding="ascii"), b"plain text")
    assert any("UnicodeDecodeError" in problem for _, problem in findings(broken, 60, tmp_path))


def test_changes_are_the_same_for_a_seed() -> None:
    import numpy as np

    good = ALL["t.csv"].good
    assert changed(good, np.random.default_rng(1)) == changed(good, np.random.default_rng(1)) != good
