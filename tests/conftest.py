"""What several tests need: small real data, quick settings, CIFAR where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from rte.config import RunConfig, merge, resolve

QUICK: dict[str, Any] = {
    "train": {"epochs": 2, "batch": 256, "lr": 0.05, "device": "cpu", "evaluate_every": 1},
    "noise": {"name": "symmetric", "ratio": 0.4},
}
QUICK_METHODS: dict[str, dict[str, Any]] = {
    "dividemix": {"warmup": 1},
    "co_teaching": {"noise_rate": 0.4, "ramp": 2},
}


@pytest.fixture(autouse=True)
def _steady_threads() -> None:
    torch.set_num_threads(2)


@pytest.fixture
def cifar() -> Path:
    folder = os.environ.get("RTE_DATA")
    if not folder:
        pytest.skip("RTE_DATA does not name a folder with CIFAR")
    return Path(folder)


def quick(name: str = "rte", **settings: Any) -> RunConfig:
    """Two short epochs of a method on digits with 40 % noise."""
    options = merge(QUICK, {"data": {"name": "digits"}, "method": {"name": name, **QUICK_METHODS.get(name, {})}})
    return resolve("digits", merge(options, settings))
