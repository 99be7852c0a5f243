"""Pre-activation residual networks (He 2016b), the usual choice of the noisy-label literature."""

from __future__ import annotations

from rte.nets.base import Net, PreActNet, Stage, split_name

DEPTHS = {"preact-resnet18": (2, 2, 2, 2), "preact-resnet34": (3, 4, 6, 3)}
NAMES = tuple(DEPTHS)
SUMMARY = "pre-activation residual network, four stages of 64 to 512 channels"


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float) -> Net | None:
    """PreAct ResNet-18 or -34, or None if the name is not one."""
    plain, large = split_name(name, size)
    if plain not in DEPTHS:
        return None
    stages = [Stage(64 * 2**s, depth, 1 if s == 0 else 2) for s, depth in enumerate(DEPTHS[plain])]
    return PreActNet(64, stages, channels=channels, classes=classes, large=large, dropout=dropout)
