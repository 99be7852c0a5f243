"""A run is data + noise + views + net + method + train, and a seed. Settings come from, later ones winning:

the defaults declared on each field, a preset, the command line's own options, and `--set section.key=value`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

from pydantic import ValidationError

from rte import registry
from rte.code import without_folder
from rte.data._roles import parse_roles
from rte.data.recognise import recognise
from rte.errors import ConfigError, did_you_mean
from rte.files import parse_json, read_text
from rte.nets.config import NetConfig
from rte.noise.config import NoiseConfig
from rte.parts.schedules import AnySchedule
from rte.settings import Settings
from rte.train.config import TrainConfig
from rte.views.config import ViewConfig

Tree = dict[str, Any]
S = TypeVar("S", bound=Settings)
Trust: TypeAlias = bool | frozenset[str]
"""Whether methods and networks that are not part of the package may run: all, none, or those of these names."""

SECTIONS: dict[str, type[Settings]] = {
    "noise": NoiseConfig,
    "views": ViewConfig,
    "net": NetConfig,
    "train": TrainConfig,
}
KEYS = ("seed", "data", "noise", "views", "net", "method", "train")
SCHEDULES = {kind.model_fields["kind"].default for kind in get_args(AnySchedule)}
"""Kinds of schedules, which pydantic puts into the path of what is wrong with one."""
NAMED = ("data", "noise", "net", "method")
"""Sections that have a name."""
LARGEST_SEED = 2**63


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the outcome of a run."""

    data_name: str
    data: Settings
    method_name: str
    method: Settings
    noise: NoiseConfig
    views: Settings
    net: NetConfig
    train: TrainConfig
    seed: int

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], trust: Trust = False) -> RunConfig:
        """Validate a tree of plain values; every complaint names the key and the nearest right one."""
        if not isinstance(tree, Mapping):
            raise ConfigError(
                f"a run's settings are a table of sections, not {type(tree).__name__}; write for example "
                '{"train": {"epochs": 30}}.'
            )
        check_sections(tree)
        tree = registry.renamed(tree)
        seed = tree.get("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < LARGEST_SEED:
            raise ConfigError(f"seed is {seed!r}; give a whole number from 0 up, less than 2**63.")
        data_name, data = _named(tree, "data")
        method_name, method = _named(tree, "method")
        models = {**SECTIONS, "views": registry.views(data_name)}
        sections: Tree = {name: validate(model, tree.get(name, {}), name) for name, model in models.items()}
        for network in {sections["net"].name, *sections["net"].wider} - {"auto"}:
            registry.network(network, trusted=_trusted(trust, network))
        own = registry.method(method_name, trusted=_trusted(trust, method_name))
        return cls(
            data_name=data_name,
            data=validate(registry.dataset(data_name).Config, data, "data"),
            method_name=method_name,
            method=validate(own.Config, method, "method"),
            seed=seed,
            **sections,
        )

    def tree(self) -> Tree:
        """The plain values again, complete; `from_tree` of them gives an equal config."""
        return {
            "seed": self.seed,
            "data": {"name": self.data_name, **self.data.model_dump(mode="json")},
            "noise": self.noise.model_dump(mode="json"),
            "views": self.views.model_dump(mode="json"),
            "net": self.net.model_dump(mode="json"),
            "method": {"name": self.method_name, **self.method.model_dump(mode="json")},
            "train": self.train.model_dump(mode="json"),
        }

    @property
    def method_label(self) -> str:
        """What the method is called in tables and folders."""
        return registry.label(self.method_name)

    @property
    def code(self) -> list[dict[str, str | None]]:
        """What is recorded of methods and networks that are not part of the package."""
        names = [registry.recorded("method", self.method_name)]
        names += [registry.recorded("net", name) for name in (self.net.name, *self.net.wider)]
        return [record for record in names if record is not None]

    @property
    def digest(self) -> str:
        """A short name for exactly these settings."""
        return digest(self.tree())

    def with_train(self, **changes: Any) -> RunConfig:
        """The same run with other training settings."""
        return replace(self, train=self.train.model_copy(update=changes))

    def with_net(self, name: str) -> RunConfig:
        """The same run with this network, whatever the budget."""
        return replace(self, net=self.net.model_copy(update={"name": name, "wider": ()}))


def digest(tree: Mapping[str, Any]) -> str:
    """A short name for a tree of settings, wherever the files lie whose code it names."""
    tree = registry.renamed(tree, lambda kind, name: without_folder(name))
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]


def check_sections(tree: Mapping[str, Any]) -> None:
    """Refuse sections that do not exist, and those that are no tables."""
    for key, value in tree.items():
        if key not in KEYS:
            raise ConfigError(f"there is no section '{key}' in a run's settings; {did_you_mean(key, KEYS)}")
        if key != "seed" and not isinstance(value, Mapping):
            example = f", such as {key}.name={value}" if key in NAMED and isinstance(value, str) else ""
            raise ConfigError(f"{key} is {value!r}, but it is a section: set one of its settings{example}.")


def _named(tree: Mapping[str, Any], section: str) -> tuple[str, Tree]:
    table = dict(tree.get(section, {}))
    name = table.pop("name", None)
    if not isinstance(name, str):
        what = "missing" if name is None else f"{name!r}, which is no name"
        raise ConfigError(f"{section}.name is {what}; see `rte list` for what there is.")
    return name, table


def _trusted(trust: Trust, name: str) -> bool:
    return trust if isinstance(trust, bool) else name in trust


def validate(model: type[S], values: Mapping[str, Any], section: str) -> S:
    """The values as settings, or one sentence about the first thing wrong with them."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{section} is {values!r}; it must be a table of settings.")
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        # of a plain number, a schedule makes {kind = "constant", value = ...}; the user wrote neither, nor any kind
        loc = first["loc"][:-1] if first["loc"][-2:] == ("constant", "value") else first["loc"]
        loc = tuple(part for k, part in enumerate(loc) if not k or part not in SCHEDULES)
        where = ".".join([section, *(str(part) for part in loc)])
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            key = str(first["loc"][0])
            raise ConfigError(f"there is no setting '{where}'; {did_you_mean(key, model.model_fields)}") from None
        message = first["msg"].removeprefix("Value error, ")
        message = message[:1].lower() + message[1:]
        given = "" if isinstance(first["input"], Mapping) or not first["loc"] else f" = {first['input']!r}"
        raise ConfigError(f"{where}{given}: {message}.") from None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Two trees as one: tables are merged, anything else is replaced.

    So is a table of another `name`, and one whose `kind` is said anew: a schedule that steps by fractions of the run
    and one that steps by epochs are of one kind, and make no sense together.
    """
    if not isinstance(over, Mapping):  # of the estimator, where anything can be given
        raise ConfigError(f'settings are {over!r}; give a table of sections, such as {{"train": {{"epochs": 30}}}}.')
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping) and _alike(old, value):
            out[key] = merge(old, value)
        else:
            out[key] = value
    return out


def _alike(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if "kind" in old and "kind" in new:
        return False
    return "name" not in old or new.get("name", old["name"]) == old["name"]


def read_preset(name: str) -> Tree:
    """A preset of the package by name, or any TOML or JSON file (such as a run's config.json) by path."""
    path = Path(name)
    if path.suffix in (".toml", ".json"):
        if not path.is_file():
            raise ConfigError(f"there is no settings file {path}; give the path of a TOML or JSON file.")
        text = read_text(path)
    elif name in registry.presets():
        text = resources.files("rte.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise ConfigError(f"there is no preset '{name}'; {did_you_mean(name, registry.presets())}")
    try:
        tree = parse_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}; mend the file's syntax.") from None
    if not isinstance(tree, dict):
        raise ConfigError(f'{path} holds no sections of settings; write for example {{"train": {{"epochs": 30}}}}.')
    return tree


def parse_override(text: str) -> Tree:
    """`section.key=value` as a tree; the value is TOML, or a plain string if it is none."""
    match = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)*)=(.*)", text, re.DOTALL)
    if match is None:
        raise ConfigError(f"--set {text}: write it as section.key=value, for example method.q=0.3.")
    path, raw = match.group(1).split("."), match.group(2)
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except (ValueError, RecursionError):  # no TOML, or a number with thousands of digits
        value = raw
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def resolve(
    preset: str | None = None,
    options: Mapping[str, Any] | None = None,
    overrides: Iterable[str] = (),
    *,
    trust_code: bool = False,
) -> RunConfig:
    """The config that a command line asks for.

    What options and overrides name is trusted; methods and networks outside the package that a preset names run only
    with `trust_code`.

    A preset may hold tables `[for.METHOD.SECTION]`: settings that count only when that method is chosen, and `about`,
    a line for `rte list`.
    """
    tree = {} if preset is None else registry.renamed(read_preset(preset))
    tree.pop("about", None)
    conditional = tree.pop("for", {})
    options = dict(options or {})
    for text in overrides:
        change = parse_override(text)
        check_sections(change)
        options = merge(options, change)
    for table in (tree, *_tables(conditional, preset)):
        check_sections(table)
    conditional = {registry.canonical("method", name): table for name, table in conditional.items()}
    options = registry.renamed(options)
    tree = merge({"data": {"name": "digits"}, "method": {"name": "rte"}}, tree)
    chosen = str(merge(tree, options)["method"].get("name", "rte"))
    if chosen != tree["method"].get("name"):
        tree["method"] = {"name": chosen}
    tree = merge(tree, conditional.get(chosen, {}))
    return RunConfig.from_tree(merge(tree, options), trust_code or registry.names_in(options))


def _tables(conditional: Any, preset: str | None) -> list[Tree]:
    """The sections of settings that count for one method only."""
    tables = list(conditional.values()) if isinstance(conditional, dict) else [conditional]
    if not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{preset}: for must hold tables [for.METHOD.SECTION], such as [for.gce.train].")
    return tables


def parse_data(
    data: str,
    *,
    data_dir: Path | None = None,
    columns: Iterable[str] = (),
    labels: str | None = None,
    group: str | None = None,
    skip_bad: bool = False,
    target: str | None = None,
    text: str | None = None,
) -> Tree:
    """What the user pointed at, such as `cifar10`, a folder or a table, as the data section of a run.

    target, text: the columns `label` and `text` of a table.
    """
    roles = parse_roles(list(columns)) | {k: v for k, v in (("label", target), ("text", text)) if v is not None}
    tree = recognise(data, registry.datasets(), data_dir, roles)
    known = registry.dataset(tree["name"]).Config.model_fields
    if group is not None and "group" not in known:
        roles["group"], group = group, None
    given: Tree = {"columns": roles, "labels": labels, "group": group, "skip_bad": skip_bad}
    given = {key: value for key, value in given.items() if value}
    for key in given:
        if key not in known:
            raise ConfigError(f"{data} takes no --{key.replace('_', '-')}; leave it out.")
    return tree | given
