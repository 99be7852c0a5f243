"""The [views] section."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from rte.views.config import Strong, ViewConfig
from rte.views.randaugment import VARIANTS


def test_defaults_are_the_papers() -> None:
    cfg = ViewConfig()
    assert (cfg.pad, cfg.border, cfg.flip, cfg.strong) == (4, "zero", True, "augmix")
    assert (cfg.width, cfg.severity, cfg.depth, cfg.size) == (3, 3.0, -1, None)


def test_every_named_augmentation_exists() -> None:
    assert set(get_args(Strong)) == {"augmix", *VARIANTS}


def test_a_scale_may_be_written_as_a_list() -> None:
    assert ViewConfig.model_validate({"scale": [0.2, 1.0]}).scale == (0.2, 1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scale": (0.0, 1.0)}, "shares of the area"),
        ({"scale": (0.5, 0.2)}, "shares of the area"),
        ({"scale": (0.5, 1.2)}, "shares of the area"),
        ({"depth": 0}, "depth 0 would leave every image as it is"),
        ({"severity": 0.1}, "greater than 0.1"),
        ({"strong": "autoaugment"}, "'augmix'"),
        ({"border": "wrap"}, "'zero' or 'reflect'"),
        ({"colour": 1}, "Extra inputs"),
    ],
)
def test_mistakes_are_explained(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ViewConfig.model_validate(wrong)
