"""The cosine network: lengths say nothing."""

from __future__ import annotations

import torch

from rte.nets import build
from rte.nets.cosine import SCALE


def test_logits_are_scaled_cosines() -> None:
    torch.manual_seed(0)
    net = build("cosine", channels=4, classes=3, size=())
    x = torch.randn(5, 4)
    w = net.head.weight.detach()
    cosines = (x @ w.T) / x.norm(dim=1)[:, None] / w.norm(dim=1)
    torch.testing.assert_close(net(x), SCALE * cosines)
    torch.testing.assert_close(net(7 * x), net(x))
