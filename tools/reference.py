"""The generated parts of the methods' pages: tables read from the declarations, so that they cannot disagree.

A page holds blocks `<!-- hyperparameters:NAME -->` ... `<!-- end -->`; `python tools/reference.py docs/methods`
rewrites what is between.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from records import records

from rte import registry
from rte.errors import ConfigError
from rte.parts.schedules import AnySchedule, Constant, Cosine, Sine
from rte.settings import Settings

COLUMNS = ("setting", "default", "range", "search range", "meaning")
BLOCK = re.compile(
    r"(?P<start><!-- (?P<kind>\w+):(?P<name>[\w-]+) -->\n)(?P<body>.*?)(?P<end><!-- end -->|\Z)", re.DOTALL
)


def hyperparameter_table(name: str) -> str:
    """The settings of a method as a Markdown table."""
    return settings_table(registry.method(name).Config)


def settings_table(model: type[Settings]) -> str:
    """Settings as a Markdown table: name, default, range, search range, meaning."""
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    for key, field in model.model_fields.items():
        description = (field.description or "").replace("|", "\\|")
        default = "required" if field.is_required() else f"`{_value(field.get_default(call_default_factory=True))}`"
        rows.append((f"`{key}`", default, _range(field), _search(field), description))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


GENERATED: Mapping[str, Callable[[str], str]] = {"hyperparameters": hyperparameter_table, "results": records}


def update(folder: Path, generated: Mapping[str, Callable[[str], str]] = GENERATED) -> list[Path]:
    """Rewrite the generated blocks of every page in a folder; returns the pages that were out of date.

    `generated`: for each kind of block, what writes it. Blocks of other kinds stay as they are.
    """
    changed = []
    for path in sorted(folder.rglob("*.md")):
        old = path.read_text(encoding="utf-8")
        new = BLOCK.sub(lambda match: _block(match, path, generated), old)  # noqa: B023  (called at once)
        if new != old:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed


def _block(match: re.Match[str], path: Path, generated: Mapping[str, Callable[[str], str]]) -> str:
    kind, name = match["kind"], match["name"]
    if not match["end"]:
        raise ConfigError(f"{path}: the block {kind}:{name} does not end; put <!-- end --> on a line after it.")
    if kind not in generated:
        return match[0]
    return f"{match['start']}{generated[kind](name)}{match['end']}"


def _value(value: Any) -> str:
    """A value as one would write it in TOML; the two waves as their formulas."""
    if isinstance(value, Constant):
        return f"{value.value:g}"
    if isinstance(value, Sine | Cosine):
        phase = Fraction(value.phase).limit_denominator(1000)
        wave = "sin" if isinstance(value, Sine) else "cos"
        return f"{value.scale:g}*{wave}({phase.numerator}*pi*k/({phase.denominator}*K))"
    if isinstance(value, Settings):
        items = value.model_dump(mode="json", exclude_none=True).items()
        return f"{{ {', '.join(f'{key} = {json.dumps(item)}' for key, item in items)} }}"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else json.dumps(value)


def _range(field: FieldInfo) -> str:
    """What a value may be: a kind, and limits where there are any, as an interval where there are two."""
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    found: Any = extra.get("limits") or {}  # of a schedule
    found = found or {key: getattr(item, key) for item in field.metadata for key in signs if hasattr(item, key)}
    kind, limits = _kind(field.annotation), " and ".join(f"{signs[key]} {limit:g}" for key, limit in found.items())
    if len(found) == 2:
        (low, below), (high, above) = found.items()
        limits = f"{'[' if low == 'ge' else '('}{below:g}, {above:g}{']' if high == 'le' else ')'}"
        kind = {"number": "", "number or none": " or none"}.get(kind, f"{kind} in")
    kind, empty, _ = kind.partition(" or none")
    return f"{kind} {limits}".strip() + empty


def _kind(annotation: Any) -> str:
    if annotation == AnySchedule:
        return "schedule"
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(annotation))
    if get_origin(annotation) is tuple:
        return "list of " + " and ".join(dict.fromkeys(_kind(one) for one in get_args(annotation) if one is not ...))
    if get_origin(annotation) in (UnionType, Union):
        return " or ".join(_kind(member) for member in get_args(annotation))
    if get_origin(annotation) in (list, dict):
        return f"{get_origin(annotation).__name__} of {_kind(get_args(annotation)[-1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    return {bool: "true or false", int: "whole number", float: "number", str: "text", NoneType: "none"}[annotation]


def _search(field: FieldInfo) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    values = extra.get("search")
    if not isinstance(values, list):
        return ""
    return (" to " if extra.get("search_kind") == "range" else ", ").join(_value(value) for value in values)


if __name__ == "__main__":
    for page in update(Path(sys.argv[1])):
        print(page)
