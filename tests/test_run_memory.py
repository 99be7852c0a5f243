"""The most memory that a run takes, where the system says."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from rte.run import memory

CPU = torch.device("cpu")


@pytest.mark.skipif(memory.resident() is None, reason="this system does not say")
def test_the_most_that_was_held_counts_and_an_earlier_run_does_not() -> None:
    with memory.Peak(CPU) as before:
        time.sleep(0.1)
    with memory.Peak(CPU) as during:
        large = np.ones(400_000_000 // 8)
        time.sleep(0.2)
        del large
    with memory.Peak(CPU) as after:
        time.sleep(0.1)
    assert before.bytes is not None
    assert during.bytes is not None
    assert after.bytes is not None
    assert during.bytes - before.bytes > 300_000_000
    assert during.bytes - after.bytes > 300_000_000


def test_an_unknown_system_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "STATISTICS", tmp_path / "missing")
    with memory.Peak(CPU) as peak:
        pass
    assert peak.bytes is None
