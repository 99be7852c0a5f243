from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from rte.errors import CheckpointError, UserError
from rte.files import read_json, unused, write_atomic, write_json
from rte.train import checkpoint


def test_round_trip(tmp_path: Path) -> None:
    state = {"method": {"w": torch.arange(5.0)}, "step": 3, "history": [{"epoch": 1, "test": {"top1": 0.5}}]}
    checkpoint.save(tmp_path / "checkpoint.pt", state)
    loaded = checkpoint.load(tmp_path / "checkpoint.pt")
    assert torch.equal(loaded["method"]["w"], torch.arange(5.0))
    assert loaded["history"] == state["history"]
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, lambda file: file.write(b"old"))

    def fail(file: object) -> None:
        raise OSError(28, os.strerror(28))

    with pytest.raises(UserError, match="No space left"):
        write_atomic(path, fail)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_missing_cut_foreign_and_other_versions_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        checkpoint.load(path)
    checkpoint.save(path, {"a": torch.zeros(1000)})
    raw = path.read_bytes()
    for length in (0, 10, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:length])
        with pytest.raises(CheckpointError, match="damaged or cut short"):
            checkpoint.load(path)
    torch.save({"w": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="no checkpoint of this program"):
        checkpoint.load(path)
    torch.save({"format": 99}, path)
    with pytest.raises(CheckpointError, match="format 99"):
        checkpoint.load(path)


def test_a_flipped_bit_is_seen(tmp_path: Path) -> None:
    """torch.load takes it without a word."""
    path, values = tmp_path / "checkpoint.pt", torch.arange(1000.0)
    checkpoint.save(path, {"w": values})
    raw = bytearray(path.read_bytes())
    raw[raw.find(values[500:510].numpy().tobytes())] ^= 4
    path.write_bytes(raw)
    assert not torch.equal(torch.load(path, weights_only=True)["w"], values)
    with pytest.raises(checkpoint.Damaged, match="damaged or cut short"):
        checkpoint.load(path)


def test_the_state_before_is_kept_and_used_when_the_last_one_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    for step in (1, 2, 3):
        checkpoint.save(path, {"step": step}, keep=True)
    assert checkpoint.load_last(path)["step"] == 3
    assert checkpoint.load(checkpoint.previous(path))["step"] == 2
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(checkpoint.FellBack, match="checkpoint.previous.pt, the state before it, is used instead"):
        assert checkpoint.load_last(path)["step"] == 2
    checkpoint.previous(path).write_bytes(b"")
    with pytest.raises(checkpoint.Damaged, match=r"checkpoint.pt is damaged"):
        checkpoint.load_last(path)


def test_a_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("checkpoint/data.pkl", bytes(10_000_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(checkpoint.Damaged):
        checkpoint.load(path)


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("evil",)


def test_nothing_in_a_checkpoint_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": 1, "x": _Evil()}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(pickle.dumps({"format": 1, "x": _Evil()}))
    for name in ("a.pt", "b.pt"):
        with pytest.raises(CheckpointError):
            checkpoint.load(tmp_path / name)
    assert not (tmp_path / "evil").exists()


def test_json_files(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"ä": [1, 2.5, None]})
    assert read_json(tmp_path / "a.json") == {"ä": [1, 2.5, None]}
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match="no valid JSON"):
        read_json(tmp_path / "a.json")
    with pytest.raises(UserError, match="is missing"):
        read_json(tmp_path / "b.json")


def test_unused_names(tmp_path: Path) -> None:
    assert unused(tmp_path / "run") == tmp_path / "run"
    (tmp_path / "run").mkdir()
    (tmp_path / "run-2").mkdir()
    assert unused(tmp_path / "run") == tmp_path / "run-3"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied"), "cannot be read .Permission denied.; mend that"),
        (OSError(5, "Input/output error"), "cannot be read .Input/output error.; mend that"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "does not fit into this machine's memory"),
        (MemoryError(), "does not fit into this machine's memory"),
    ],
)
def test_a_checkpoint_that_is_whole_is_never_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"a": torch.zeros(3)})

    def fail(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(CheckpointError, match=sentence) as found:
        checkpoint.load(path)
    assert "delete" not in str(found.value)


FULL = """
import resource, signal, sys, torch
from pathlib import Path
from rte.errors import UserError
from rte.train import checkpoint

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    checkpoint.save(Path(sys.argv[1]), {"a": torch.zeros(1_000_000)})
except UserError as error:
    print(error)
"""


def test_a_write_that_fails_in_the_middle_of_a_checkpoint_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"a": torch.ones(3)})
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"cannot write {path} (File too large)"), done.stderr[-800:]
    assert torch.equal(checkpoint.load(path)["a"], torch.ones(3))
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]
