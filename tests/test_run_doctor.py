"""What `rte doctor` finds, and what it advises."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rte.run import doctor
from rte.run.doctor import Finding, examine


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's speed as if it had been measured."""
    monkeypatch.setattr(doctor, "convolution_speed", lambda precision: 1e11)
    monkeypatch.setattr(doctor, "faster_in_half", lambda device: False)


def findings(data_dir: Path | None = None) -> dict[str, Finding]:
    return {finding.about: finding for finding in examine(data_dir)}


@pytest.mark.usefixtures("quick")
def test_everything_is_looked_at_and_what_is_not_fine_has_a_remedy(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert {"rte", "torch", "device", "cores", "speed", "memory", "this folder", "data folder"} <= found.keys()
    assert {f"extra {name}" for name in doctor.EXTRAS} <= found.keys()
    assert all(finding.advice for finding in found.values() if finding.kind != "fine")
    assert found["data folder"].kind == "note"


@pytest.mark.usefixtures("quick")
def test_data_that_is_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "cifar-100-binary").mkdir()
    assert findings(tmp_path)["data folder"].what == f"{tmp_path} has cifar100"


@pytest.mark.parametrize(
    ("cores", "threads", "kind", "word"),
    [(8, 8, "fine", ""), (8, 1, "slow", "unset OMP_NUM_THREADS"), (2, 8, "slow", "OMP_NUM_THREADS=2")],
)
def test_threads_that_do_not_fit_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int, kind: str, word: str
) -> None:
    monkeypatch.setattr(doctor, "usable_cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    found = doctor._cores()
    assert found.kind == kind
    assert word in found.advice


def test_a_slow_processor_is_said_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "convolution_speed", lambda precision: 1e9)
    monkeypatch.setattr(doctor, "faster_in_half", lambda device: True)
    speed = {finding.about: finding for finding in doctor._compute()}["speed"]
    assert speed.kind == "slow"
    assert "bf16 is clearly faster" in speed.what


def test_a_missing_extra_is_a_note_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda module: None)
    found = list(doctor._extras())
    assert {finding.kind for finding in found} == {"note"}
    assert "pip install 'robust-temporal-ensembling[onnx]'" in [finding.advice for finding in found]
