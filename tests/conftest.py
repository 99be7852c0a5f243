"""What several tests need: small real data, quick settings, CIFAR where it is."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
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
    "cleannet": {"steps": 20, "references": 4},
    "mlnt": {"sets": 1},
}
TRUSTED = 50
"""Examples whose labels are known to be right, for methods that need them."""


os.environ["OMP_NUM_THREADS"] = "1"
"""Of the programs that tests start: `make test` runs as many tests beside each other as there are cores."""


os.environ["RTE_REPORT"] = "0"
"""`rte fit` in tests ends without a page, which costs time; those that want one say --report."""


os.environ["XDG_DATA_HOME"] = os.devnull
"""The default data folder lies in it: tests must not find what somebody has fetched."""


os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
"""Some virtual machines offer AMX and then call it an illegal instruction, which would end tests of half precision."""


LONGEST = (
    "test_train_distributed",
    "test_search_pbt",
    "test_methods_contract",
    "test_code",
    "test_cli",
    "test_run",
    "test_reproduce_runner",
    "test_readme",
    "test_tune",
    "test_run_budget",
    "test_train_ranks",
    "test_methods_auto",
    "test_estimator_vectors",
)
"""Files of more than fifteen seconds; they come first, so that none of them is the last to end."""


WORK = {"fit", "steps", "start", "resume", "subprocess", "torchrun", "getfixturevalue", "corrupt"}
"""What tests call that train, start programs or corrupt pictures: `--quick` leaves them out unless marked `core`."""


OURS = ("test_", "conftest", "tiny", "learning")
"""How modules of the tests are called, whose functions are looked into."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that neither train nor start programs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    if config.getoption("--quick"):
        left_out = [item for item in items if isinstance(item, pytest.Function) and not in_core_lane(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def in_core_lane(item: pytest.Function) -> bool:
    """Whether neither a test nor what it uses of the tests' own functions and fixtures does long work."""
    if item.get_closest_marker("core"):
        return True
    if item.get_closest_marker("slow") or "cifar" in item.fixturenames:
        return False
    definitions = item._fixtureinfo.name2fixturedefs.values()
    used = [item.function, *(fixture[-1].func for fixture in definitions)]
    return not any(works(function, set()) for function in used)


def works(function: Any, seen: set[Any]) -> bool:
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or code in seen:
        return False
    seen.add(code)
    names = set(names_in(code))
    here = [function.__globals__.get(name) for name in names]
    own = [one for one in here if str(getattr(one, "__module__", "rte")).startswith(OURS)]
    return bool(names & WORK) or any(works(one, seen) for one in own)


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from names_in(one)


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
