"""Residual networks: the published sizes, and each block against its formula."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.nets import build, multiply_adds, parameters
from rte.nets.resnet import BasicBlock, BottleneckBlock


@pytest.mark.parametrize(
    ("name", "classes", "size", "count"),
    [
        ("resnet50", 1000, 224, 25_557_032),
        ("resnet34", 1000, 224, 21_797_672),
        ("resnet18", 1000, 224, 11_689_512),
        ("resnet18-cifar", 10, 32, 11_173_962),
    ],
)
def test_parameter_counts_are_the_published_ones(name: str, classes: int, size: int, count: int) -> None:
    with torch.device("meta"):
        net = build(name, channels=3, classes=classes, size=(size, size))
    assert parameters(net) == count


@pytest.mark.parametrize(("name", "millions"), [("resnet50", 4089), ("resnet18", 1814)])
def test_multiply_adds_are_the_published_ones(name: str, millions: int) -> None:
    with torch.device("meta"):
        net = build(name, channels=3, classes=1000, size=(224, 224))
    assert round(multiply_adds(net, (224, 224), 3) / 1e6) == millions


def test_depth_ten_counts_ten_layers() -> None:
    with torch.device("meta"):
        net = build("resnet10", channels=3, classes=10, size=(32, 32))
    layers = [m for m in net.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(layers) + 1 == 10


def convolve(layers: list[nn.Module], x: Tensor, activate: bool) -> Tensor:
    convolution, norm = layers
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    out = F.conv2d(x, convolution.weight, stride=convolution.stride, padding=convolution.padding)
    mean, variance = out.mean((0, 2, 3), keepdim=True), out.var((0, 2, 3), unbiased=False, keepdim=True)
    out = (out - mean) / (variance + norm.eps).sqrt()
    return out.clamp(min=0) if activate else out


@pytest.mark.parametrize("kind", [BasicBlock, BottleneckBlock])
@pytest.mark.parametrize(("inputs", "stride"), [(8, 1), (8, 2), (3, 1)])
def test_a_block_is_its_formula(kind: type[BasicBlock | BottleneckBlock], inputs: int, stride: int) -> None:
    torch.manual_seed(0)
    width = 8 // kind.expansion
    block = kind(inputs, width, stride, 0.0).double()
    layers = [m for m in block.branch if isinstance(m, nn.Conv2d | nn.BatchNorm2d)]
    kernels = [m.kernel_size[0] for m in layers if isinstance(m, nn.Conv2d)]
    strides = [m.stride[0] for m in layers if isinstance(m, nn.Conv2d)]
    assert kernels == ([3, 3] if kind is BasicBlock else [1, 3, 1])
    assert strides == ([stride, 1] if kind is BasicBlock else [1, stride, 1])
    x = torch.randn(4, inputs, 7, 7, dtype=torch.float64)
    out = x
    for at in range(0, len(layers), 2):
        out = convolve(layers[at : at + 2], out, activate=at < len(layers) - 2)
    skip = x if (inputs, stride) == (8, 1) else convolve(list(block.shortcut.children()), x, activate=False)
    before = x.clone()
    torch.testing.assert_close(block(x), (out + skip).clamp(min=0))
    assert torch.equal(x, before)
