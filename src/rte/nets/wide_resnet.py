"""Wide residual networks (Zagoruyko & Komodakis 2016); WRN-28-6 is the paper's network for CIFAR."""

from __future__ import annotations

import re

from rte.errors import ConfigError
from rte.nets.base import Net, PreActNet, Stage, split_name

NAMES = ("wrn-28-6", "wrn-28-2", "wrn-28-10", "wrn-16-4", "wrn-<depth>-<width>")
SUMMARY = "wide residual network: three stages of (depth - 4) / 6 blocks, 16, 32 and 64 times width channels"


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float) -> Net | None:
    """WRN-depth-width, or None if the name is not one."""
    plain, large = split_name(name, size)
    match = re.fullmatch(r"wrn-(\d+)-(\d+)", plain)
    if match is None:
        return None
    depth, width = int(match[1]), int(match[2])
    blocks, rest = divmod(depth - 4, 6)
    if blocks < 1 or rest or width < 1:
        raise ConfigError(
            f"'{name}' cannot be built: the depth of a wide residual network is 6n + 4 (10, 16, 22, 28, ...) "
            "and its width at least 1, as in wrn-28-6."
        )
    stages = [Stage(16 * width, blocks, 1), Stage(32 * width, blocks, 2), Stage(64 * width, blocks, 2)]
    return PreActNet(16, stages, channels=channels, classes=classes, large=large, dropout=dropout)
