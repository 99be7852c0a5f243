"""The page on views: its code runs, and its table names every setting."""

from __future__ import annotations

import re
from pathlib import Path

from rte.views.config import ViewConfig
from rte.views.randaugment import VARIANTS

PAGE = (Path(__file__).parent.parent / "docs" / "views.md").read_text(encoding="utf-8")


def test_the_code_runs_from_top_to_bottom(capsys: object) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    space: dict[str, object] = {}
    exec(code, space)
    assert space["views"].shape == (8, 32, 32, 3)  # type: ignore[attr-defined]
    assert space["x"].shape == (24, 32, 32, 3)  # type: ignore[attr-defined]


def test_every_setting_and_variant_is_named() -> None:
    for name in (*ViewConfig.model_fields, *VARIANTS):
        assert f"`{name}`" in PAGE
