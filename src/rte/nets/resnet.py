"""Residual networks (He 2016a); ResNet-50 is the paper's network for large images, ResNet-10 for confusion matrices.

The stride of a bottleneck lies in its 3x3 convolution. The last batch norm of a block starts at scale 1, not 0.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from rte.nets.base import Net, Stage, conv, initialise, make_dropout, make_stem, pool, split_name

DEPTHS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3)}
BOTTLENECK = {"resnet50"}
NAMES = (*DEPTHS, "resnet18-cifar", "resnet50-imagenet")
SUMMARY = "residual network, four stages; -cifar or -imagenet chooses the stem, otherwise the image size does"


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float) -> Net | None:
    """ResNet-10, -18, -34 or -50, or None if the name is not one."""
    plain, large = split_name(name, size)
    if plain not in DEPTHS:
        return None
    stages = [Stage(64 * 2**s, depth, 1 if s == 0 else 2) for s, depth in enumerate(DEPTHS[plain])]
    block = BottleneckBlock if plain in BOTTLENECK else BasicBlock
    return ResNet(block, stages, channels=channels, classes=classes, large=large, dropout=dropout)


class ResidualBlock(nn.Module):
    """relu(branch(x) + shortcut(x)); where the shape changes, the shortcut is a strided 1x1 convolution with BN."""

    expansion = 1

    def __init__(self, branch: nn.Sequential, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.branch(x)
        return F.relu(out.add_(self.shortcut(x)), inplace=True)


class BasicBlock(ResidualBlock):
    """3x3, 3x3."""

    def __init__(self, inputs: int, width: int, stride: int, dropout: float) -> None:
        branch = nn.Sequential(
            *_unit(inputs, width, 3, stride), make_dropout(dropout), conv(width, width, 3), nn.BatchNorm2d(width)
        )
        super().__init__(branch, inputs, width, stride)


class BottleneckBlock(ResidualBlock):
    """1x1 to `width` channels, 3x3, 1x1 to four times as many."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, dropout: float) -> None:
        outputs = self.expansion * width
        branch = nn.Sequential(
            *_unit(inputs, width, 1),
            *_unit(width, width, 3, stride),
            make_dropout(dropout),
            conv(width, outputs, 1),
            nn.BatchNorm2d(outputs),
        )
        super().__init__(branch, inputs, outputs, stride)


class ResNet(Net):
    """A stem, four stages of residual blocks, global average and a linear head."""

    def __init__(
        self,
        block: type[BasicBlock | BottleneckBlock],
        stages: list[Stage],
        *,
        channels: int,
        classes: int,
        large: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        inputs = stages[0].width
        self.stem = make_stem(channels, inputs, large=large, activate=True)
        blocks: list[nn.Module] = []
        for width, depth, first in stages:
            for stride in (first, *[1] * (depth - 1)):
                blocks.append(block(inputs, width, stride, dropout))
                inputs = block.expansion * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)
        self.deep = stages[-1].depth
        initialise(self)

    @property
    def last_stage(self) -> tuple[str, ...]:
        return tuple(f"blocks.{k}" for k in range(len(self.blocks) - self.deep, len(self.blocks)))

    def features(self, x: Tensor) -> Tensor:
        return pool(self.blocks(self.stem(x)))


def _unit(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return [conv(inputs, outputs, kernel, stride), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
