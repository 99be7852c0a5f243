"""Names to files to code. Nothing is registered by hand: a file in the folder is the registration."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module, resources
from types import ModuleType

from rte.errors import ConfigError, did_you_mean
from rte.methods.base import Method

NOT_DATASETS = {"types", "files", "statistics", "get"}


def _modules(package: str) -> list[str]:
    paths = [str(path) for path in import_module(package).__path__]
    return sorted(module.name for module in pkgutil.iter_modules(paths) if not module.name.startswith("_"))


def methods() -> list[str]:
    """The names of all methods."""
    return [name for name in _modules("rte.methods") if name != "base"]


def method(name: str) -> type[Method]:
    """The class of a method."""
    file = name.replace("-", "_")
    if file not in methods():
        raise ConfigError(f"there is no method '{name}'; {did_you_mean(file, methods())}")
    module = import_module(f"rte.methods.{file}")
    found = [
        item
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, Method) and item.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise ConfigError(f"rte/methods/{file}.py must define exactly one Method, not {len(found)}.")
    return found[0]


def datasets() -> list[str]:
    """The names of all kinds of data."""
    return [name for name in _modules("rte.data") if name not in NOT_DATASETS]


def dataset(name: str) -> ModuleType:
    """The module of a dataset: it has `Config` and `load`."""
    if name not in datasets():
        raise ConfigError(f"there is no dataset '{name}'; {did_you_mean(name, datasets())}")
    return import_module(f"rte.data.{name}")


def presets() -> list[str]:
    """The names of all presets shipped with the package."""
    files = resources.files("rte.presets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))
