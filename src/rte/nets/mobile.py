"""Mobile networks: MobileNetV2 (Sandler 2018) and EfficientNet-Lite0 (Tan & Le 2019, Liu 2020), to start from weights.

Both are chains of inverted residual blocks: 1x1 to six times as many channels, 3x3 or 5x5 within each channel, 1x1
back; a block that keeps the shape adds its input. Weights of others fit by `rte.nets.weights`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from rte.nets.base import Net, initialise, make_dropout, pool

SUMMARY = "mobile network, 3 to 5M parameters, 0.3 to 0.4G multiply-adds at 224x224: to start from trained weights"
STEM, FEATURES = 32, 1280


class Row(NamedTuple):
    """`depth` blocks of `width` channels with filters of `kernel`, the first of the given stride."""

    expansion: int
    width: int
    depth: int
    stride: int
    kernel: int = 3


class Form(NamedTuple):
    """A network: its rows, batch norm's epsilon, and whether strides pad as TensorFlow does, more at the far side."""

    rows: tuple[Row, ...]
    eps: float
    far: bool


FORMS = {
    "mobilenet-v2": Form(
        (Row(1, 16, 1, 1), Row(6, 24, 2, 2), Row(6, 32, 3, 2), Row(6, 64, 4, 2), Row(6, 96, 3, 1), Row(6, 160, 3, 2),
         Row(6, 320, 1, 1)),
        eps=1e-5, far=False,
    ),
    "efficientnet-lite0": Form(
        (Row(1, 16, 1, 1), Row(6, 24, 2, 2), Row(6, 40, 2, 2, 5), Row(6, 80, 3, 2), Row(6, 112, 3, 1, 5),
         Row(6, 192, 4, 2, 5), Row(6, 320, 1, 1)),
        eps=1e-3, far=True,
    ),
}  # fmt: skip
NAMES = tuple(FORMS)


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float) -> Net | None:
    """MobileNetV2 or EfficientNet-Lite0, or None if the name is not one."""
    if name not in FORMS:
        return None
    return Mobile(FORMS[name], channels=channels, classes=classes, dropout=dropout)


class FarConv(nn.Conv2d):
    """A strided convolution that pads as TensorFlow's "same" does: where it is odd, more below and to the right."""

    def forward(self, x: Tensor) -> Tensor:
        sides: list[int] = []
        for n, kernel, stride in zip(reversed(x.shape[2:]), self.kernel_size, self.stride, strict=True):
            pad = max((-(-n // stride) - 1) * stride + kernel - n, 0)
            sides += [pad // 2, pad - pad // 2]
        return F.conv2d(F.pad(x, sides), self.weight, self.bias, self.stride, 0, 1, self.groups)


def unit(inputs: int, outputs: int, kernel: int, stride: int, form: Form, *, groups: int = 1) -> nn.Sequential:
    """Convolution and batch norm."""
    far = form.far and stride > 1
    kind, padding = (FarConv, 0) if far else (nn.Conv2d, kernel // 2)
    return nn.Sequential(
        kind(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=form.eps, momentum=0.1),
    )


class InvertedResidual(nn.Module):
    """expand -> depthwise -> project; ReLU6 after the first two."""

    def __init__(self, inputs: int, outputs: int, stride: int, kernel: int, expansion: int, form: Form) -> None:
        super().__init__()
        wide = inputs * expansion
        self.adds = stride == 1 and inputs == outputs
        self.expand = unit(inputs, wide, 1, 1, form) if expansion > 1 else None
        self.depthwise = unit(wide, wide, kernel, stride, form, groups=wide)
        self.project = unit(wide, outputs, 1, 1, form)

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.expand is None else F.relu6(self.expand(x))
        out: Tensor = self.project(F.relu6(self.depthwise(wide)))
        return out + x if self.adds else out


class Mobile(Net):
    """A stem of stride 2, inverted residual blocks, 1x1 to 1280 channels, global average, dropout and a linear head."""

    def __init__(self, form: Form, *, channels: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.stem = unit(channels, STEM, 3, 2, form)
        blocks: list[nn.Module] = []
        inputs = STEM
        for row in form.rows:
            for stride in (row.stride, *[1] * (row.depth - 1)):
                blocks.append(InvertedResidual(inputs, row.width, stride, row.kernel, row.expansion, form))
                inputs = row.width
        self.blocks = nn.Sequential(*blocks)
        self.last = unit(inputs, FEATURES, 1, 1, form)
        self.dropout = make_dropout(dropout)
        self.head = nn.Linear(FEATURES, classes)
        self.depths = tuple(row.depth for row in form.rows)
        initialise(self)

    @property
    def last_stage(self) -> tuple[str, ...]:
        """The blocks after the last halving, and what follows them."""
        deep = sum(self.depths[-2:])
        return (*(f"blocks.{k}" for k in range(len(self.blocks) - deep, len(self.blocks))), "last")

    def features(self, x: Tensor) -> Tensor:
        x = self.blocks(F.relu6(self.stem(x)))
        features: Tensor = self.dropout(pool(F.relu6(self.last(x))))
        return features
