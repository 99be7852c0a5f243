"""Compilation: never on import, once per machine, and possible where nothing can be written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from rte import jit

FIRST_BATCH = """
import sys
import numpy as np
import rte
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.loader import Loader
from rte.views.batch import ViewPlan
assert "numba" not in sys.modules, "numba was loaded by an import"
engine = ViewEngine(ViewConfig(), mean=(0.5,) * 3, std=(0.5,) * 3, size=(8, 8), channels=3)
engine.render(np.zeros((2, 8, 8, 3), np.uint8), np.arange(2), seed=0, epoch=0, plan=ViewPlan(1, 1))
from rte.views import kernels_batch
for kernel in (kernels_batch.crop_and_flip, kernels_batch.normalise, kernels_batch.strong_views):
    print("compiled", sum(kernel.stats.cache_misses.values()), "loaded", sum(kernel.stats.cache_hits.values()))
"""


def test_a_second_process_finds_every_kernel_ready() -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_BATCH], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["compiled 0 loaded 1"] * 3


def test_the_name_under_which_a_kernel_is_kept_changes_with_the_sources(tmp_path: Path) -> None:
    for name in ("kernels_one.py", "kernels_two.py", "operations.py", "unrelated.py"):
        (tmp_path / name).write_text("x = 1\n")

    def found() -> str:
        jit.digest.cache_clear()
        return jit.digest(tmp_path)

    before = found()
    assert re.fullmatch(r"[0-9a-f]{12}", before)
    (tmp_path / "unrelated.py").write_text("x = 2\n")
    assert found() == before
    for name in ("kernels_two.py", "operations.py"):
        (tmp_path / name).write_text("x = 2\n")
        assert found() != before
        before = found()

    def twice(x: int) -> int:
        return 2 * x

    assert jit.kernel(twice)(4) == 8
    assert twice.__qualname__.endswith(jit.digest(Path(__file__).parent))


def test_without_a_place_for_the_cache_kernels_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def nowhere(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", nowhere)

    def thrice(x: int) -> int:
        return 3 * x

    assert jit.kernel(thrice)(4) == 12
