"""The compact network: its cost, its widths, and that it learns."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rte.errors import ConfigError
from rte.nets import build, multiply_adds, parameters


def test_it_costs_what_its_page_says() -> None:
    net = build("compact", channels=3, classes=10, size=(32, 32))
    # stem at 32x32; 32 -> 64 at 16x16; 64 -> 128 at 8x8 (two 3x3 and one 1x1 each); head
    weights = [9 * 3 * 32, 9 * 32 * 64 + 9 * 64 * 64 + 32 * 64, 9 * 64 * 128 + 9 * 128 * 128 + 64 * 128, 128 * 10]
    norms = 2 * (32 + 64) + 2 * (64 + 128) + 2 * 128
    assert parameters(net) == sum(weights) + norms + 10 == 289_706
    assert multiply_adds(net, (32, 32), 3) == sum(w * p for w, p in zip(weights, [1024, 256, 64, 1], strict=True))
    assert multiply_adds(net, (32, 32), 3) == pytest.approx(30e6, rel=0.02)


@pytest.mark.parametrize(
    ("name", "width"), [("compact", 128), ("compact-32", 128), ("compact-16", 64), ("compact-64", 256)]
)
def test_the_width_is_in_the_name(name: str, width: int) -> None:
    assert build(name, channels=1, classes=2, size=(8, 8)).width == width


def test_no_convolution_is_narrower_than_32() -> None:
    net = build("compact", channels=1, classes=2, size=(8, 8))
    assert min(m.out_channels for m in net.modules() if isinstance(m, nn.Conv2d)) == 32


def test_widths_that_crash_are_refused() -> None:
    with pytest.raises(ConfigError, match="'compact-4' cannot be built: its width must be at least 8"):
        build("compact-4", channels=1, classes=2, size=(8, 8))


def test_it_learns() -> None:
    torch.manual_seed(0)
    net = build("compact", channels=1, classes=4, size=(8, 8), dropout=0.1)
    x, y = torch.randn(32, 1, 8, 8), torch.arange(32) % 4
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for _ in range(25):
        loss = nn.functional.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1
