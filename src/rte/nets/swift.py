"""A network for short runs on large enough data: the most accuracy we know for a few minutes of two cores.

A fixed layer that whitens small patches, then three blocks of two 3x3 convolutions, each of which halves the image
after its first convolution. The shape is that of the networks which learn CIFAR-10 fastest (Jordan 2024, "94% on
CIFAR-10 in 3.29 seconds on a single GPU"), at a quarter to a half of their width. Whitening spares the first layers
the work of finding edges and colours in correlated pixels. What learns fast also memorises fast: on a small dataset
with many wrong labels `compact` is the better choice (docs/networks.md).
"""

from __future__ import annotations

import itertools
import re

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.errors import ConfigError
from rte.nets.base import NARROWEST, Net, conv, make_dropout, split_name

NAMES = ("swift", "swift-64", "swift-<width>")
SUMMARY = "small network with a whitening layer for two processor cores: 0.3M parameters, 20M multiply-adds at 32x32"

DIRECTIONS = 16
"""The most directions of a patch that are kept; each gives two channels, one of either sign."""
SMALLEST = 4
"""Feature maps are halved while both sides are at least this long."""


class Whitening(nn.Conv2d):
    """Patches -> their coordinates along the principal axes, each of variance one, of both signs.

    The axes are those of the training images once `fit` has seen some, and random before. They are not trained; the
    bias is. Images below 100 pixels are cut into overlapping patches of 2x2, larger ones into separate patches of 4x4.
    """

    def __init__(self, channels: int, size: tuple[int, int], *, large: bool) -> None:
        side = min(4 if large else 2, *size)
        self.rank = min(DIRECTIONS, channels * side**2)
        super().__init__(channels, 2 * self.rank, side, stride=side if large else 1)
        self.side = side
        self.weight.requires_grad_(False)
        axes = nn.init.orthogonal_(torch.empty(channels * side**2, self.rank))
        self._set(axes.T)
        nn.init.zeros_(self.bias)  # type: ignore[arg-type]

    def _set(self, axes: Tensor) -> None:
        with torch.no_grad():
            self.weight.copy_(torch.cat([axes, -axes]).view_as(self.weight))

    def fit(self, x: Tensor, floor: float = 5e-4) -> None:
        """Take the axes from images x (B, C, H, W); `floor` is added to each variance."""
        patches = F.unfold(x.float(), self.side, stride=self.side).transpose(1, 2).flatten(0, 1).double()
        variances, axes = torch.linalg.eigh(patches.T @ patches / len(patches))  # ascending
        axes = axes * torch.where(axes.sum(0) < 0, -1.0, 1.0)  # a sign of its own for each, the same on every machine
        scaled = axes / (variances.clamp_min(0) + floor).sqrt()
        self._set(scaled.flip(1)[:, : self.rank].T)


class Block(nn.Module):
    """conv, halve, BN, GELU, dropout, conv, BN, GELU. Convolutions begin close to the identity where they can."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv(inputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.dropout = make_dropout(dropout)
        for layer in (self.conv1, self.conv2):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.in_channels <= layer.out_channels:
                nn.init.dirac_(layer.weight[: layer.in_channels])

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        if min(x.shape[2:]) >= SMALLEST:
            x = F.max_pool2d(x, 2)
        x = self.dropout(F.gelu(self.norm1(x)))
        return F.gelu(self.norm2(self.conv2(x)))


class Swift(Net):
    """Whitening, GELU, three blocks, the maximum over all positions, and a linear head."""

    def __init__(
        self, width: int, *, channels: int, classes: int, size: tuple[int, int], large: bool, dropout: float
    ) -> None:
        super().__init__()
        self.stem = Whitening(channels, size, large=large)
        widths = (2 * self.stem.rank, width, 2 * width, 4 * width)
        self.blocks = nn.Sequential(*(Block(a, b, dropout) for a, b in itertools.pairwise(widths)))
        self.head = nn.Linear(widths[-1], classes)
        nn.init.zeros_(self.head.bias)

    def calibrate(self, x: Tensor) -> None:
        self.stem.fit(x)

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.blocks(F.gelu(self.stem(x)))
        return maps.amax((2, 3))


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float) -> Net | None:
    """First block of `width` channels (32 unless named), second of twice, third of four times as many."""
    plain, large = split_name(name, size)
    match = re.fullmatch(r"swift(?:-(\d+))?", plain)
    if match is None:
        return None
    width = int(match[1] or 32)
    if width < NARROWEST:
        raise ConfigError(f"'{name}' cannot be built: its width must be at least {NARROWEST}, as in swift-32.")
    return Swift(width, channels=channels, classes=classes, size=size, large=large, dropout=dropout)
