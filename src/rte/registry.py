"""Names to files to code. Nothing is registered by hand: a file in the folder is the registration.

Methods and networks may also be code that is not part of the package (`rte.code`), which runs only where it is trusted.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module, resources
from types import ModuleType
from typing import Any

import torch
from torch import nn

from rte import code, nets
from rte.errors import ConfigError, UserError, did_you_mean
from rte.methods.base import Method
from rte.nets.base import Featureless
from rte.settings import Settings
from rte.views.config import ViewConfig
from rte.views.tables import TableViewConfig
from rte.views.vectors import VectorViewConfig

Build = Callable[..., nets.Net]
"""build(channels=, classes=, size=, dropout=) -> a fresh network."""
GIVEN = ("channels", "classes", "size", "dropout")

VIEWS: dict[str, type[Settings]] = {"images": ViewConfig, "vectors": VectorViewConfig, "table": TableViewConfig}
NOT_DATASETS = {"check", "types", "given", "files", "ids", "recognise", "rows", "statistics", "get"}
"""Modules of `data/` that other rooms ask by name, and that are no kind of data."""


def _modules(package: str) -> list[str]:
    paths = [str(path) for path in import_module(package).__path__]
    return sorted(module.name for module in pkgutil.iter_modules(paths) if not module.name.startswith("_"))


def methods() -> list[str]:
    """The names of all methods."""
    return [name for name in _modules("rte.methods") if name != "base"]


def canonical(kind: code.Kind, name: str) -> str:
    """The one spelling of a name: files by their whole path, methods with underscores."""
    if ":" in name or name.endswith(".py") or kind == "net":
        return code.canonical(name)
    own = name.replace("-", "_")
    return own if own in methods() else name


def renamed(tree: Mapping[str, Any], rename: Callable[[code.Kind, str], str] = canonical) -> dict[str, Any]:
    """A tree of settings with its methods and networks renamed, by default to their one spelling."""
    out = dict(tree)
    for kind in code.GROUPS:
        if isinstance(table := out.get(kind), Mapping):
            out[kind] = table = dict(table)
            if isinstance(table.get("name"), str):
                table["name"] = rename(kind, table["name"])
            if isinstance(table.get("wider"), list | tuple):
                table["wider"] = [rename(kind, str(name)) for name in table["wider"]]
    return out


def names_in(tree: Mapping[str, Any]) -> frozenset[str]:
    """All methods and networks that a tree of settings names."""
    tables = [table for kind in code.GROUPS if isinstance(table := tree.get(kind), Mapping)]
    wider = [name for table in tables if isinstance(table.get("wider"), list) for name in table["wider"]]
    return frozenset(map(str, [*(table.get("name") for table in tables), *wider]))


def label(name: str) -> str:
    """A name short enough for tables and folders: MyMethod of my.py:MyMethod."""
    return name.rpartition(":")[2]


def method(name: str, *, trusted: bool = False) -> type[Method]:
    """The class of a method. Code that is not part of the package runs if it is `trusted`, or did so before."""
    file = name.replace("-", "_")
    if file not in methods():
        if code.is_foreign("method", name):
            found: type[Method] = code.fetch("method", code.canonical(name), check_method, trusted=trusted)
            return found
        raise ConfigError(f"there is no method '{name}'; {did_you_mean(file, (*methods(), *code.installed('method')))}")
    module = import_module(f"rte.methods.{file}")
    own = [
        item
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, Method) and item.__module__ == module.__name__
    ]
    if len(own) != 1:
        raise ConfigError(f"rte/methods/{file}.py must define exactly one Method, not {len(own)}.")
    return own[0]


def network(name: str, *, trusted: bool = False) -> Build:
    """What builds a network. Code that is not part of the package runs if it is `trusted`, or did so before."""
    if name in nets.available() or not code.is_foreign("net", name):
        return partial(nets.build, name)
    return partial(_build, name, code.fetch("net", code.canonical(name), check_network, trusted=trusted))


def recorded(kind: code.Kind, name: str) -> dict[str, str | None] | None:
    """What a run folder records of a method or network that is not part of the package."""
    return code.origin(kind, name)


def adopt(kind: code.Kind, value: Any) -> str:
    """The name of a method or network that is given as a class or function of the running program."""
    return code.adopt(kind, value, check_method if kind == "method" else check_network)


def check_method(name: str, value: Any) -> None:
    """Refuse what is no method, or cannot be called as one is."""
    if not (inspect.isclass(value) and issubclass(value, Method)):
        raise ConfigError(f"{name} is no method; derive a class from rte.methods.base.Method.")
    config = getattr(value, "Config", None)
    if not (inspect.isclass(config) and issubclass(config, Settings)):
        raise ConfigError(f"{name} has no settings; write `class Config(Settings)` in it, of rte.settings.")
    if value.predict is Method.predict or (value.loss is Method.loss and value.step is Method.step):
        raise ConfigError(f"{name} does not say enough; write predict(self, x) and loss(self, batch, t).")
    for called, usual in vars(Method).items():
        if (own := getattr(value, called)) is usual or not inspect.isfunction(usual):
            continue
        wanted = [p.name for p in inspect.signature(usual).parameters.values() if p.default is p.empty]
        if not callable(own) or not code.takes(own, *wanted):
            raise ConfigError(
                f"{name}.{called} cannot be called as the trainer does; write {called}({', '.join(wanted)})."
            )


def check_network(name: str, value: Any) -> None:
    """Refuse what cannot be called to build a network."""
    if not callable(value) or (inspect.isclass(value) and not issubclass(value, nn.Module)):
        raise ConfigError(f"{name} builds no network; give a function that returns a Net, or a class derived from Net.")
    for parameter in inspect.signature(value).parameters.values():
        fixed = parameter.kind is parameter.POSITIONAL_ONLY or parameter.name not in GIVEN
        if fixed and parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            raise ConfigError(
                f"{name} asks for '{parameter.name}'; it is called with channels, classes, size and dropout, by name, "
                "or those of them that it takes."
            )


def _build(
    name: str, make: Any, *, channels: int, classes: int, size: tuple[int, ...], dropout: float = 0.0
) -> nets.Net:
    """A network of other code, tried on blank examples."""
    given = {"channels": channels, "classes": classes, "size": size, "dropout": dropout}
    parameters = inspect.signature(make).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        if dropout and "dropout" not in {p.name for p in parameters}:
            raise ConfigError(f"net.dropout is {dropout:g}, which {name} does not take; leave it at 0.")
        given = {key: value for key, value in given.items() if key in {p.name for p in parameters}}
    try:
        net = make(**given)
        if not isinstance(net, nn.Module):
            raise ConfigError(f"{name} returned {type(net).__name__}, not a network; return a Net.")
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            out = net.eval()(torch.zeros(2, channels, *size))
    except UserError:
        raise
    except Exception as error:
        raise code.blame(error, name) from error
    if not isinstance(out, torch.Tensor) or out.shape != (2, classes):
        shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ConfigError(f"{name} makes {shape} of 2 examples; it must return logits of shape (2, {classes}).")
    net.train()
    return net if isinstance(net, nets.Net) else Featureless(net, name)


def datasets() -> list[str]:
    """The names of all kinds of data."""
    return [name for name in _modules("rte.data") if name not in NOT_DATASETS]


def dataset(name: str) -> ModuleType:
    """The module of a dataset: it has `Config` and `load`."""
    if name not in datasets():
        raise ConfigError(f"there is no dataset '{name}'; {did_you_mean(name, datasets())}")
    return import_module(f"rte.data.{name}")


def views(name: str) -> type[Settings]:
    """The settings of the views of a dataset's examples: of images, unless its module says `KIND = "vectors"`."""
    return VIEWS[str(getattr(dataset(name), "KIND", "images"))]


def presets() -> list[str]:
    """The names of all presets shipped with the package."""
    files = resources.files("rte.presets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))
