"""The perceptron for vectors against NumPy."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import erf

from rte.nets import build, parameters


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def norm(h: np.ndarray) -> np.ndarray:
    return (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)


def test_it_is_the_formula() -> None:
    torch.manual_seed(0)
    net = build("mlp-8-2", channels=5, classes=3, size=()).double()
    torch.nn.init.normal_(net.head.weight)
    x = torch.randn(4, 5, dtype=torch.float64)
    state = {name: value.numpy() for name, value in net.state_dict().items()}
    h = x.numpy() @ state["stem.weight"].T + state["stem.bias"]
    for k in range(2):
        h = h + gelu(norm(h) @ state[f"layers.{k}.linear.weight"].T + state[f"layers.{k}.linear.bias"])
    features = np.concatenate([gelu(norm(h)), x.numpy()], 1)
    expected = features @ state["head.weight"].T + state["head.bias"]
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(net.features(x).detach().numpy(), features, rtol=1e-9)
    assert net.width == 13


def test_it_begins_with_no_opinion() -> None:
    net = build("mlp", channels=5, classes=3, size=())
    assert torch.equal(net(torch.randn(4, 5)), torch.zeros(4, 3))
    assert parameters(build("mlp-16", channels=5, classes=3, size=())) < parameters(net)
