"""A small network for machines without an accelerator: accurate enough to compare methods on two processor cores.

At least 32 channels everywhere, because narrower convolutions leave a processor's vector units idle: they cost nearly
the same and learn less.
"""

from __future__ import annotations

import re

from rte.errors import ConfigError
from rte.nets.base import NARROWEST, Net, PreActNet, Stage, split_name

NAMES = ("compact", "compact-64", "compact-<width>")
SUMMARY = "small pre-activation network for two processor cores: 0.3M parameters, 30M multiply-adds at 32x32"


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float) -> Net | None:
    """Stem of `width` channels (32 unless named), one block of twice and one of four times as many, both stride 2."""
    plain, large = split_name(name, size)
    match = re.fullmatch(r"compact(?:-(\d+))?", plain)
    if match is None:
        return None
    width = int(match[1] or 32)
    if width < NARROWEST:
        raise ConfigError(f"'{name}' cannot be built: its width must be at least {NARROWEST}, as in compact-32.")
    stages = [Stage(2 * width, 1, 2), Stage(4 * width, 1, 2)]
    return PreActNet(width, stages, channels=channels, classes=classes, large=large, dropout=dropout)
