"""What `rte list` shows: every name a run can be made of, with one line about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from rte import code, nets, registry
from rte.config import read_preset
from rte.errors import ConfigError, did_you_mean
from rte.noise.config import NoiseConfig

KINDS = ("methods", "data", "nets", "presets", "noise")


def installed(kind: code.Kind) -> dict[str, str]:
    """What installed packages bring, each with the package's name; one that is broken says how."""
    rows = {}
    ours = registry.methods() if kind == "method" else nets.available()
    for name, point in code.installed(kind).items():
        if name in ours:
            continue
        try:
            registry.method(name, trusted=True) if kind == "method" else registry.network(name, trusted=True)
            value = point.load()
            about = str(getattr(value, "summary", "")) or (value.__doc__ or "").partition("\n")[0]
        except ConfigError as error:
            about = str(error)
        rows[name] = f"{about} (of {point.dist.name} {point.dist.version})".strip() if point.dist else about
    return rows


def catalogue(what: str = "all") -> dict[str, dict[str, str]]:
    """{kind: {name: summary}} of one kind, or of all."""
    if what not in (*KINDS, "all"):
        raise ConfigError(f"there is no list of '{what}'; {did_you_mean(what, (*KINDS, 'all'))}")
    lists: dict[str, Callable[[], dict[str, str]]] = {
        "methods": lambda: {name: registry.method(name).summary for name in registry.methods()} | installed("method"),
        "data": lambda: {name: str(registry.dataset(name).SUMMARY) for name in registry.datasets()},
        "nets": lambda: nets.available() | installed("net"),
        "presets": lambda: {name: str(read_preset(name).get("about", "")) for name in registry.presets()},
        "noise": lambda: dict.fromkeys(get_args(NoiseConfig.model_fields["name"].annotation), ""),
    }
    return {kind: lists[kind]() for kind in KINDS if what in (kind, "all")}


def as_tree(what: str = "all") -> dict[str, Any]:
    """The same for programs; of methods, all that is known."""
    tree: dict[str, Any] = dict(catalogue(what))
    if "methods" in tree:
        from rte.report.profiles import Profile, profiles

        tree["methods"] = [
            each.tree() if isinstance(each, Profile) else {"name": each[0], "broken": each[1]} for each in profiles()
        ]
    return tree
