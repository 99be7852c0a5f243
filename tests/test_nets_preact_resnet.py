"""Pre-activation residual networks: the size of the paper."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rte.nets import build, parameters


@pytest.mark.parametrize(
    ("name", "millions", "convolutions"), [("preact-resnet18", "11.2", 17), ("preact-resnet34", "21.3", 33)]
)
def test_parameter_counts_are_the_published_ones(name: str, millions: str, convolutions: int) -> None:
    with torch.device("meta"):
        net = build(name, channels=3, classes=10, size=(32, 32))
    assert f"{parameters(net) / 1e6:.1f}" == millions
    assert sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in net.modules()) == convolutions
    assert net.width == 512
