"""What several tests need: small real data, quick settings, CIFAR where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from rte import registry
from rte.config import RunConfig, merge, resolve

QUICK: dict[str, Any] = {
    "train": {"epochs": 2, "batch": 256, "lr": 0.05, "device": "cpu", "evaluate_every": 1},
    "noise": {"name": "symmetric", "ratio": 0.4},
}
QUICK_METHODS: dict[str, dict[str, Any]] = {
    "cleannet": {"steps": 20},
    "mlnt": {"sets": 1},
}
TRUSTED = 50
"""Examples whose labels are known to be right, for methods that need them."""


os.environ["OMP_NUM_THREADS"] = "1"
"""Of the programs that tests start: `make test` runs as many tests beside each other as there are cores."""


os.environ["XDG_DATA_HOME"] = os.devnull
"""The default data folder lies in it: tests must not find what somebody has fetched."""


os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
"""Some virtual machines offer AMX and then call it an illegal instruction, which would end tests of half precision."""


LONGEST = ("test_train_distributed", "test_search_pbt", "test_run", "test_cli", "test_reproduce_runner", "test_readme")
"""Files that take minutes; they come first, so that none of them is the last to end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(autouse=True)
def _steady_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def cifar() -> Path:
    folder = os.environ.get("RTE_DATA")
    if not folder:
        pytest.skip("RTE_DATA does not name a folder with CIFAR")
    return Path(folder)


def quick(name: str = "rte", **settings: Any) -> RunConfig:
    """Two short epochs of a method on digits with 40 % noise, and trusted examples for methods that need some."""
    options = merge(QUICK, {"data": {"name": "digits"}, "method": {"name": name, **QUICK_METHODS.get(name, {})}})
    if "trusted examples" in registry.method(name).needs:
        options = merge(options, {"train": {"trusted": TRUSTED}})
    return resolve("digits", merge(options, settings))
