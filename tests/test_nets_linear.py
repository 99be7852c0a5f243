"""The linear network: its features are the vectors."""

from __future__ import annotations

import torch

from rte.nets import build


def test_it_is_a_linear_layer_that_begins_at_zero() -> None:
    net = build("linear", channels=4, classes=3, size=())
    x = torch.randn(5, 4)
    assert torch.equal(net(x), torch.zeros(5, 3))
    assert torch.equal(net.features(x), x)
    with torch.no_grad():
        net.head.weight.copy_(torch.arange(12.0).view(3, 4))
    torch.testing.assert_close(net(x), x @ torch.arange(12.0).view(3, 4).T)


def test_dropout_acts_on_the_vector_in_training_alone() -> None:
    torch.manual_seed(0)
    net = build("linear", channels=400, classes=3, size=(), dropout=0.5)
    x = torch.ones(1, 400)
    assert 0.3 < float((net.features(x) == 0).float().mean()) < 0.7
    assert torch.equal(net.eval().features(x), x)
