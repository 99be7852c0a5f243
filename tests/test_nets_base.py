"""The blocks against their formulas, spelled out with torch's functions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.nets.base import PreActBlock, PreActNet, Stage, conv, make_stem, pool, split_name


def normalise(x: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """(x - mean) / sqrt(var + eps) * scale + shift, over the batch and all positions."""
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (variance + norm.eps).sqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]


def randomise(net: nn.Module) -> None:
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(4, 4, 1), (4, 6, 1), (4, 4, 2), (4, 8, 2)])
def test_a_pre_activation_block_is_its_formula(inputs: int, outputs: int, stride: int) -> None:
    torch.manual_seed(0)
    block = PreActBlock(inputs, outputs, stride, 0.0).double()
    randomise(block)
    x = torch.randn(3, inputs, 7, 6, dtype=torch.float64)
    active = normalise(x, block.norm1).clamp(min=0)
    middle = normalise(F.conv2d(active, block.conv1.weight, stride=stride, padding=1), block.norm2).clamp(min=0)
    branch = F.conv2d(middle, block.conv2.weight, padding=1)
    if (inputs, stride) == (outputs, 1):
        assert block.shortcut is None
        skip = x
    else:
        assert block.shortcut is not None
        skip = F.conv2d(active, block.shortcut.weight, stride=stride)
    before = x.clone()
    torch.testing.assert_close(block(x), branch + skip)
    assert torch.equal(x, before)


def test_a_pre_activation_network_ends_in_norm_relu_average_and_head() -> None:
    torch.manual_seed(0)
    stages = [Stage(4, 2, 1), Stage(6, 1, 2)]
    net = PreActNet(4, stages, channels=1, classes=3, large=False, dropout=0.0).double()
    randomise(net)
    x = torch.randn(3, 1, 9, 9, dtype=torch.float64)
    deep = net.blocks(net.stem(x))
    assert deep.shape == (3, 6, 5, 5)
    features = normalise(deep, net.norm).clamp(min=0).mean((2, 3))
    torch.testing.assert_close(net(x), features @ net.head.weight.T + net.head.bias)


@pytest.mark.parametrize(("large", "activate", "side"), [(False, False, 32), (False, True, 32), (True, True, 8)])
def test_stems(large: bool, activate: bool, side: int) -> None:
    out = make_stem(3, 16, large=large, activate=activate)(torch.randn(2, 3, 32, 32))
    assert out.shape == (2, 16, side, side)
    assert bool((out >= 0).all()) == activate


@pytest.mark.parametrize("kernel", [1, 3, 7])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [1, 2, 7, 8])
def test_a_convolution_keeps_the_size_up_to_its_stride(kernel: int, stride: int, side: int) -> None:
    out = conv(2, 3, kernel, stride)(torch.zeros(1, 2, side, side))
    assert out.shape == (1, 3, -(-side // stride), -(-side // stride))


def test_pool_is_the_mean_over_positions() -> None:
    x = torch.arange(12.0).reshape(1, 2, 2, 3)
    assert pool(x).tolist() == [[2.5, 8.5]]


@pytest.mark.parametrize(
    ("name", "size", "found"),
    [
        ("a", (32, 32), ("a", False)),
        ("a", (99, 100), ("a", True)),
        ("a-cifar", (224, 224), ("a", False)),
        ("a-imagenet", (32, 32), ("a", True)),
        ("cifar-a", (32, 32), ("cifar-a", False)),
    ],
)
def test_a_name_is_split_from_its_stem(name: str, size: tuple[int, int], found: tuple[str, bool]) -> None:
    assert split_name(name, size) == found
