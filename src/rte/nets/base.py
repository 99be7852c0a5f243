"""What a network is, and the pre-activation trunk that three of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch.nn.functional as F
from torch import Tensor, nn

from rte.errors import ConfigError

LARGE = 100
"""Images with a side of at least this many pixels get the ImageNet stem unless the name says otherwise."""


NARROWEST = 8
"""With fewer channels, torch 2.13 on CPUs overwrites memory in the backward pass (channels_last), and dies."""


class Net(nn.Module):
    """x (B, C, H, W) -> features (B, D) -> logits (B, K). A subclass sets `head` and writes `features`."""

    head: nn.Linear
    share: float = 1.0
    """What the rest learns of the head's learning rate, where it starts from trained weights."""
    hidden: bool = True
    """Whether it has hidden layers, so that its features are learnt and are not the input itself."""
    still: tuple[str, ...] = ()
    """Parts that stay as they are, batch-norm statistics included."""

    @property
    def last_stage(self) -> tuple[str, ...]:
        """The names of the parts between the last halving of the image and the head."""
        raise NotImplementedError

    def backbone(self) -> list[nn.Parameter]:
        """All parameters but those of the head."""
        own = {id(p) for p in self.head.parameters()}
        return [p for p in self.parameters() if id(p) not in own]

    def hold(self, names: Sequence[str]) -> None:
        """Keep these parts as they are from now on."""
        self.still = tuple(names)
        for name in self.still:
            self.get_submodule(name).requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for name in self.still:
            self.get_submodule(name).eval()
        return self

    @property
    def width(self) -> int:
        """D, the number of features."""
        return self.head.in_features

    def features(self, x: Tensor) -> Tensor:
        """What the head sees: (B, C, H, W) -> (B, D), averaged over all positions, so any image size fits."""
        raise NotImplementedError

    def with_features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, D) and logits (B, K) of one forward pass."""
        features = self.features(x)
        return features, self.head(features)

    def calibrate(self, x: Tensor) -> None:
        """Look at some training images (B, C, H, W) before training begins; most networks need not."""

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits


class Featureless(Net):
    """A module that makes logits of images, in the place of a `Net`; a method that asks for features is refused."""

    def __init__(self, module: nn.Module, name: str) -> None:
        super().__init__()
        self.module, self.name = module, name

    @property
    def width(self) -> int:
        raise ConfigError(f"the method asks {self.name} for features; derive it from rte.nets.Net, which has them.")

    def features(self, x: Tensor) -> Tensor:
        return x.new_empty(0, self.width)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.module(x)
        return logits


class Stage(NamedTuple):
    """`depth` blocks of `width` channels, of which the first has the given stride."""

    width: int
    depth: int
    stride: int


def split_name(name: str, size: tuple[int, int]) -> tuple[str, bool]:
    """The name without its stem suffix, and whether the stem is the ImageNet one: "-cifar", "-imagenet" or by size."""
    for suffix, large in (("-cifar", False), ("-imagenet", True)):
        if name.endswith(suffix):
            return name.removesuffix(suffix), large
    return name, max(size) >= LARGE


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution without bias that keeps the size up to its stride: (H, W) -> (ceil(H/stride), ceil(W/stride))."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def make_stem(channels: int, width: int, *, large: bool, activate: bool) -> nn.Sequential:
    """CIFAR: 3x3. ImageNet: 7x7 stride 2, batch norm, ReLU, 3x3 max pool stride 2. `activate` ends both in BN-ReLU."""
    layers: list[nn.Module] = [conv(channels, width, 7, 2) if large else conv(channels, width, 3)]
    if large or activate:
        layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    if large:
        layers.append(nn.MaxPool2d(3, 2, padding=1))
    return nn.Sequential(*layers)


def make_dropout(rate: float) -> nn.Module:
    """Element-wise dropout, or nothing at rate 0."""
    return nn.Dropout(rate) if rate else nn.Identity()


def pool(x: Tensor) -> Tensor:
    """Global average: (B, D, H, W) -> (B, D)."""
    return x.mean((2, 3))


def initialise(net: nn.Module) -> None:
    """He initialisation for convolutions (normal, fan-out), batch norm as the identity, biases zero."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


class PreActBlock(nn.Module):
    """BN-ReLU-conv-BN-ReLU-dropout-conv plus a shortcut (He 2016b; dropout as in Zagoruyko 2016).

    Where the shape changes, the shortcut is a strided 1x1 convolution of the activated input.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = conv(inputs, outputs, 3, stride)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.dropout = make_dropout(dropout)
        self.conv2 = conv(outputs, outputs, 3)
        self.shortcut = conv(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.norm1(x), inplace=True)
        skip: Tensor = x if self.shortcut is None else self.shortcut(active)
        middle = F.relu(self.norm2(self.conv1(active)), inplace=True)
        out: Tensor = self.conv2(self.dropout(middle))
        return out.add_(skip)


class PreActNet(Net):
    """A stem, stages of pre-activation blocks, BN-ReLU, global average and a linear head."""

    def __init__(
        self, stem: int, stages: Sequence[Stage], *, channels: int, classes: int, large: bool, dropout: float
    ) -> None:
        super().__init__()
        self.stem = make_stem(channels, stem, large=large, activate=False)
        blocks: list[nn.Module] = []
        inputs = stem
        for width, depth, first in stages:
            for stride in (first, *[1] * (depth - 1)):
                blocks.append(PreActBlock(inputs, width, stride, dropout))
                inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(inputs)
        self.head = nn.Linear(inputs, classes)
        initialise(self)

    def features(self, x: Tensor) -> Tensor:
        return pool(F.relu(self.norm(self.blocks(self.stem(x))), inplace=True))
