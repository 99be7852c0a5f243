"""Nothing is lost: damaged checkpoints, a disk that is really full, a folder that may only be read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick

from rte.config import RunConfig
from rte.errors import CheckpointError, UserError
from rte.run.start import resume, start
from rte.train import checkpoint


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return quick("rte", train={"epochs": 3, "batch": 64})


@pytest.fixture(scope="module")
def straight(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "straight"
    start(config, folder)
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, Any] = checkpoint.load(folder / "checkpoint.pt")
    return {name: value for name, value in state["method"].items() if isinstance(value, torch.Tensor)}


def same(a: Path, b: Path) -> bool:
    first, second = weights(a), weights(b)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("damage", ["cut in half", "a flipped bit", "empty"])
def test_a_damaged_checkpoint_costs_no_more_than_the_work_since_the_one_before(
    config: RunConfig, straight: Path, damage: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    start(config, folder)
    path = folder / "checkpoint.pt"
    raw = bytearray(path.read_bytes())
    if damage == "a flipped bit":
        value = next(value for value in weights(folder).values() if value.is_floating_point() and value.numel() > 64)
        raw[raw.find(value.contiguous().numpy().tobytes()[:64]) + 5] ^= 16
    else:
        del raw[len(raw) // 2 if damage == "cut in half" else 0 :]
    path.write_bytes(raw)
    with pytest.warns(checkpoint.FellBack, match="is used instead"):
        resume(folder)
    assert same(folder, straight)


def test_two_damaged_checkpoints_are_refused_with_what_to_do(config: RunConfig, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    start(quick("ce", train={"epochs": 2}), folder)
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (folder / name).write_bytes(np.random.default_rng(0).bytes(1000))
    with pytest.raises(CheckpointError, match="delete it and resume to train from the start"):
        resume(folder)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with room for a checkpoint, but not for two."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting needs the rights of root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_stops_the_run_in_a_sentence_and_space_lets_it_go_on(
    config: RunConfig, straight: Path, disk: Path
) -> None:
    with pytest.raises(UserError, match=r"cannot write .* \(No space left on device\); free space"):
        start(config, disk / "run")
    assert checkpoint.load(disk / "run" / "checkpoint.pt")["epoch"] == 1
    with pytest.raises(UserError, match="No space left on device"):
        resume(disk / "run")
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    resume(disk / "run")
    assert same(disk / "run", straight)
    assert not list((disk / "run").glob(".*.part")), "what a failed write began is cleared away"


def test_a_folder_that_may_only_be_read_is_refused_and_left_as_it_was(
    config: RunConfig, straight: Path, disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(UserError, match=r"cannot be written to|Read-only file system"):
        start(config, disk / "run")
    assert list(disk.iterdir()) == []
