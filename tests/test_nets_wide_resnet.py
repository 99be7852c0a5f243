"""Wide residual networks: the sizes of the papers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rte.errors import ConfigError
from rte.nets import build, parameters


@pytest.mark.parametrize(
    ("name", "classes", "millions"),
    [
        ("wrn-28-6", 10, "13.1"),
        ("wrn-28-10", 10, "36.5"),
        ("wrn-16-4", 10, "2.7"),
        ("wrn-28-2", 10, "1.5"),
        ("wrn-28-6", 100, "13.2"),
    ],
)
def test_parameter_counts_are_the_published_ones(name: str, classes: int, millions: str) -> None:
    with torch.device("meta"):
        net = build(name, channels=3, classes=classes, size=(32, 32))
    assert f"{parameters(net) / 1e6:.1f}" == millions


def test_depth_and_width_are_those_of_the_name() -> None:
    with torch.device("meta"):
        net = build("wrn-22-3", channels=3, classes=10, size=(32, 32))
    layers = [m for m in net.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(layers) + 3 == 22  # the name counts the three shortcuts, but not the head
    assert net.width == 64 * 3


@pytest.mark.parametrize("name", ["wrn-27-6", "wrn-4-6", "wrn-0-1", "wrn-28-0", "wrn-29-2-imagenet"])
def test_an_impossible_depth_or_width_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' cannot be built.*6n \\+ 4.*wrn-28-6"):
        build(name, channels=3, classes=10, size=(32, 32))
