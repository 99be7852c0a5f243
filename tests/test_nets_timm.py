"""Networks of timm, which is not installed here: a stand-in with its interface is."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from rte import nets, registry
from rte.errors import ConfigError
from rte.nets import timm as ours


class Body(nn.Module):
    num_features = 6

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).mean((2, 3))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    module, asked = ModuleType("timm"), []

    def create_model(name: str, **given: Any) -> nn.Module:
        asked.append({"name": name, **given})
        if name == "nothing":
            raise RuntimeError("Unknown model (nothing)")
        return Body(given["in_chans"])

    module.create_model = create_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", module)
    monkeypatch.setattr(ours, "find_spec", lambda name: object())
    return asked


def test_a_network_of_timm_has_features_and_a_head(stand_in: list[dict[str, Any]]) -> None:
    net = registry.network("timm:resnet18")(channels=1, classes=4, size=(16, 16), dropout=0.1)
    assert stand_in == [{"name": "resnet18", "pretrained": False, "in_chans": 1, "num_classes": 0, "drop_rate": 0.1}]
    x = torch.randn(2, 1, 16, 16)
    assert net(x).shape == (2, 4)
    assert torch.equal(net.head(net.features(x)), net(x))


def test_mistakes_are_named(stand_in: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"timm does not make nothing \(Unknown model"):
        nets.build("timm:nothing", channels=3, classes=4, size=(16, 16))
    monkeypatch.setattr(ours, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs the package timm, which is not installed"):
        nets.build("timm:resnet18", channels=3, classes=4, size=(16, 16))
