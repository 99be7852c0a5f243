"""What `rte list` shows: every name a run can be made of, with one line about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from rte import nets, registry
from rte.config import read_preset
from rte.errors import ConfigError, did_you_mean
from rte.noise.config import NoiseConfig

KINDS = ("methods", "data", "nets", "presets", "noise")


def catalogue(what: str = "all") -> dict[str, dict[str, str]]:
    """{kind: {name: summary}} of one kind, or of all."""
    if what not in (*KINDS, "all"):
        raise ConfigError(f"there is no list of '{what}'; {did_you_mean(what, (*KINDS, 'all'))}")
    lists: dict[str, Callable[[], dict[str, str]]] = {
        "methods": lambda: {name: registry.method(name).summary for name in registry.methods()},
        "data": lambda: {name: str(registry.dataset(name).SUMMARY) for name in registry.datasets()},
        "nets": nets.available,
        "presets": lambda: {name: str(read_preset(name).get("about", "")) for name in registry.presets()},
        "noise": lambda: dict.fromkeys(get_args(NoiseConfig.model_fields["name"].annotation), ""),
    }
    return {kind: lists[kind]() for kind in KINDS if what in (kind, "all")}
