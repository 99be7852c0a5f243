"""What a network costs: parameters and multiply-adds."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


def parameters(net: nn.Module) -> int:
    """The number of trainable numbers."""
    return sum(p.numel() for p in net.parameters() if p.requires_grad)


def multiply_adds(net: nn.Module, size: tuple[int, ...], channels: int) -> int:
    """Multiplications of one forward pass of one example (channels, *size), in convolutions and linear layers.

    Runs a copy without data, so it costs next to nothing and leaves the network as it was.
    """
    total = 0

    def count(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal total
        assert isinstance(module, nn.Conv2d | nn.Linear)
        total += output.numel() * module.weight[0].numel()  # each output is one dot product with a row of the weight

    shape = copy.deepcopy(net).to("meta").eval()
    for module in shape.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(count)
    with torch.no_grad():
        shape(torch.empty(1, channels, *size, device="meta"))
    return total
