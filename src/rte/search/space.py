"""What is searched, and where: read from the declarations of the settings, so that every method can be tuned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic.fields import FieldInfo

from rte import registry
from rte.config import RunConfig, merge, parse_override
from rte.errors import ConfigError, did_you_mean
from rte.parts.schedules import AnySchedule
from rte.settings import Settings
from rte.train.config import TrainConfig

Number: TypeAlias = int | float
Values: TypeAlias = dict[str, Number]
"""One value for each searched setting: {"train.lr": 0.03, "method.views": 7}."""


@dataclass(frozen=True)
class Range:
    """Any number from low to high."""

    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """One of some values, in their order."""

    values: tuple[Number, ...]


Dimension: TypeAlias = Range | Choice
Space: TypeAlias = dict[str, Dimension]


def declared(method_name: str) -> Space:
    """Every setting of the training and of a method that is declared with `search`."""
    return {key: found for section, model in _models(method_name).items() for key, found in _of(section, model)}


def offered(config: RunConfig) -> Space:
    """Settings of the views that declare a range, too: searched where `--search` names them; the paper does not."""
    return dict(_of("views", type(config.views)))


def _of(section: str, model: type[Settings]) -> Iterator[tuple[str, Dimension]]:
    for name, field in model.model_fields.items():
        if (dimension := _dimension(field)) is not None:
            yield f"{section}.{name}", dimension


def _models(method_name: str) -> dict[str, type[Settings]]:
    return {"train": TrainConfig, "method": registry.method(method_name).Config}


def _dimension(field: FieldInfo) -> Dimension | None:
    extra = field.json_schema_extra
    if not isinstance(extra, Mapping) or "search" not in extra:
        return None
    search: Any = extra["search"]
    return Choice(tuple(search)) if extra["search_kind"] == "list" else Range(float(search[0]), float(search[1]))


def is_schedule(method_name: str, key: str) -> bool:
    """Whether a setting may change over a run, or is one plain number for all of it."""
    section, name = key.split(".", 1)
    model = _models(method_name).get(section)
    return model is not None and isinstance(model.model_fields[name].default, AnySchedule)


def narrow(space: Space, texts: Iterable[str], config: RunConfig) -> Space:
    """The space with `--search` taken into account: other limits or values of a setting, or `keep` to leave it."""
    out, known = dict(space), {**offered(config), **space}
    for text in texts:
        key, wanted = _flat(parse_override(text))
        if key not in known:
            raise ConfigError(f"--search {text}: '{key}' is not searched; {did_you_mean(key, known)}")
        if wanted == "keep":
            out.pop(key, None)
            continue
        out[key] = _narrowed(known[key], wanted, text)
        ends = out[key]
        for value in ends.values if isinstance(ends, Choice) else (ends.low, ends.high):
            applied(config, {key: value})
    if not out:
        raise ConfigError("every setting is kept, so there is nothing to search; leave out a --search ...=keep.")
    return out


def _flat(tree: Mapping[str, Any]) -> tuple[str, Any]:
    parts = []
    value: Any = tree
    while isinstance(value, Mapping):
        (part, value), *_ = value.items()
        parts.append(part)
    return ".".join(parts), value


def _narrowed(old: Dimension, wanted: Any, text: str) -> Dimension:
    numbers = isinstance(wanted, list) and all(isinstance(v, Number) and not isinstance(v, bool) for v in wanted)
    if isinstance(old, Choice):
        if not numbers or not wanted:
            raise ConfigError(f"--search {text}: give an ordered list of values such as [2, 3, 4], or keep.")
        return Choice(tuple(wanted))
    if not numbers or len(wanted) != 2 or wanted[0] >= wanted[1]:
        raise ConfigError(f"--search {text}: give the lower and the upper end such as [0.01, 0.1], or keep.")
    return Range(float(wanted[0]), float(wanted[1]))


def applied(config: RunConfig, values: Mapping[str, Any]) -> RunConfig:
    """The settings with some of them replaced: by a constant, or by the table of a schedule."""
    tree = config.tree()
    for key, value in values.items():
        section, name = key.split(".", 1)
        tree = merge(tree, {section: {name: value}})
    return RunConfig.from_tree(tree)


def to_tree(space: Space) -> dict[str, list[Number] | dict[str, float]]:
    """Plain values for a JSON file; `from_tree` of them gives an equal space."""
    return {
        key: list(d.values) if isinstance(d, Choice) else {"low": d.low, "high": d.high} for key, d in space.items()
    }


def from_tree(tree: Mapping[str, Any]) -> Space:
    """The space that `to_tree` wrote."""
    return {key: Choice(tuple(d)) if isinstance(d, list) else Range(d["low"], d["high"]) for key, d in tree.items()}
