"""Costs by hand, and that counting leaves no trace."""

from __future__ import annotations

import torch
from torch import nn

from rte.nets.cost import multiply_adds, parameters


def test_the_count_is_that_by_hand() -> None:
    net = nn.Sequential(
        nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),  # 6 x 4x4 outputs, each of 2 x 3 x 3 products
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(6 * 16, 5),
    )
    assert multiply_adds(net, (8, 8), 4) == 6 * 16 * 18 + 96 * 5
    assert parameters(net) == 6 * 18 + 6 + 12 + 96 * 5 + 5


def test_frozen_parameters_do_not_count_and_shared_ones_count_once() -> None:
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False), nn.Linear(3, 2))
    net[1].weight = net[0].weight
    net[2].requires_grad_(False)
    assert parameters(net) == 9


def test_counting_leaves_the_network_alone() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten()).train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    multiply_adds(net, (5, 5), 1)
    assert net.training
    assert not any(module._forward_hooks for module in net.modules())
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
