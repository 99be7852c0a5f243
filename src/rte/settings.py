"""The base of every group of settings: strict, frozen, and each field declared once.

A field carries its range and a one-line description; validation, `--help`, the tables in the docs and the search range
of `rte tune` are all read from that declaration.
"""

from __future__ import annotations

import operator
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

LIMITS = {
    "ge": ("at least", operator.ge),
    "gt": ("above", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("below", operator.lt),
}


@runtime_checkable
class Changing(Protocol):
    """A value that changes over a run: a schedule."""

    def extent(self) -> tuple[float, float]:
        """Its least and its greatest value."""
        ...


class Settings(BaseModel):
    """Unknown keys are errors, values are not coerced from strings, instances do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _within_limits(cls, value: Any, info: ValidationInfo) -> Any:
        """The limits of a schedule hold for every value that it takes."""
        limits = limits_of(cls, info.field_name or "")
        if not limits or not isinstance(value, Changing):
            return value
        for end in value.extent():
            for name, limit in limits.items():
                words, holds = LIMITS[name]
                if not holds(end, limit):
                    raise ValueError(f"it must stay {words} {limit:g} for the whole run, and takes the value {end:g}")
        return value


def limits_of(model: type[Settings], name: str) -> dict[str, float]:
    """The limits of a field that is a schedule."""
    extra = model.model_fields[name].json_schema_extra
    found: Any = extra.get("limits", {}) if isinstance(extra, dict) else {}
    return dict(found)


def setting(
    default: Any, description: str, *, search: tuple[float, float] | list[Any] | None = None, **limits: Any
) -> Any:
    """A field of `Settings`. `search` is the range (low, high), or the ordered list of values, that PBT may explore.

    `limits` are pydantic's: ge, gt, le, lt, min_length and so on. Those of a schedule hold for all values it takes.
    """
    extra: dict[str, Any] = {}
    if search is not None:
        extra = {"search": list(search), "search_kind": "list" if isinstance(search, list) else "range"}
    if isinstance(default, Changing):
        extra["limits"], limits = limits, {}
    return Field(default, description=description, json_schema_extra=extra, **limits)
