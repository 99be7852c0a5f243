"""The base of every group of settings: strict, frozen, and each field declared once.

A field carries its range and a one-line description; validation, `--help`, the tables in the docs and the search range
of `rte tune` are all read from that declaration.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """Unknown keys are errors, values are not coerced from strings, instances do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def setting(
    default: Any, description: str, *, search: tuple[float, float] | list[Any] | None = None, **limits: Any
) -> Any:
    """A field of `Settings`. `search` is the range (low, high), or the ordered list of values, that PBT may explore.

    `limits` are pydantic's: ge, gt, le, lt, min_length and so on.
    """
    extra: dict[str, Any] = (
        {}
        if search is None
        else {"search": list(search), "search_kind": "list" if isinstance(search, list) else "range"}
    )
    return Field(default, description=description, json_schema_extra=extra, **limits)
