"""RoG: the loss that trains, the head that predicts, and when it is fitted."""

from __future__ import annotations

from typing import Any

import learning
import numpy as np
import oracles
import pytest
import tiny
import torch

from rte.errors import ConfigError
from rte.methods.rog import RobustGenerative
from rte.nets.base import Featureless
from rte.parts.robust_gaussian import linear_discriminant, robust_gaussians

DIGITS = torch.arange(40) % 10


def make(build: Any = tiny.linear, y: torch.Tensor = tiny.Y, **cfg: Any) -> RobustGenerative:
    torch.manual_seed(0)
    task = tiny.task(build, y)
    method = RobustGenerative(RobustGenerative.Config.model_validate(cfg), task)
    method.classes = task.classes
    return method


@pytest.mark.parametrize("q", [0.0, 0.7])
def test_the_network_learns_by_a_simple_loss(q: float) -> None:
    method, batch = make(q=q), tiny.batch([3, 7, 1, 10])
    logits = tiny.array(method.net(batch.x))
    expected = oracles.gce(logits, batch.y.tolist(), q).mean()
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


def test_before_the_fit_the_network_predicts_and_then_the_gaussians() -> None:
    method, x = make(tiny.normed), tiny.images(range(5))
    method.eval()
    assert torch.equal(method.predict(x), method.net(x))
    sweep = tiny.sweep(method)
    report = method.epoch_end(tiny.at(3), sweep)
    z = sweep(method.features)
    weight, bias = linear_discriminant(robust_gaussians(z, tiny.Y, tiny.K, seed=3))
    expected = tiny.array(method.features(x)) @ weight.numpy().T + bias.numpy()
    np.testing.assert_allclose(tiny.array(method.predict(x)), expected, rtol=1e-3, atol=1e-3)
    assert not torch.allclose(method.predict(x), method.net(x))
    assert torch.equal(method.networks()["softmax"](x), method.net(x))
    shares = oracles.softmax(tiny.array(method.predict(tiny.images(range(tiny.N)))))
    assert tiny.number(report["belief"]) == pytest.approx(shares[range(tiny.N), tiny.Y].mean(), abs=1e-4)


def test_the_features_are_what_the_last_layer_sees() -> None:
    net = tiny.Plain()
    method = RobustGenerative(RobustGenerative.Config(), tiny.Task(DIGITS, 10, lambda k=0: net))
    assert method.weight.shape == (10, net.width)
    x = torch.randn(40, 1, 8, 8)
    method.epoch_end(tiny.at(0), tiny.sweep(method, make=lambda i, view: x, n=40))
    assert torch.equal(method.features(x), net.features(x))
    expected = net.features(x) @ method.weight.T + method.bias
    torch.testing.assert_close(method.predict(x), expected)


def test_the_head_is_in_the_checkpoint() -> None:
    method, other = make(tiny.normed), make(tiny.normed)
    method.epoch_end(tiny.at(0), tiny.sweep(method))
    other.load_state_dict(method.state_dict())
    x = tiny.images(range(5))
    assert torch.equal(method.eval().predict(x), other.eval().predict(x))


def test_wrong_labels_are_trusted_less() -> None:
    """Features that tell the classes apart, and one label in four wrong."""
    y = torch.arange(80) % tiny.K
    wrong = torch.arange(80) % 16 < tiny.K
    given = torch.where(wrong, (y + 1) % tiny.K, y)
    torch.manual_seed(1)
    logits = 3.0 * torch.nn.functional.one_hot(y, tiny.K) + torch.randn(80, tiny.K)
    method = make([tiny.Table(logits)], given)
    sweep = tiny.sweep(method, make=tiny.numbers, n=80)
    method.epoch_end(tiny.at(0), sweep)
    trust = method.trust(sweep)
    assert float(trust[wrong].mean()) < 0.2 < 0.6 < float(trust[~wrong].mean())


def test_the_gaussians_are_not_worse_than_the_network_under_them() -> None:
    """They need more examples than the 400 of other tests of learning: a covariance is fitted to 32 features."""
    settings = {**learning.STILL, "epochs": 24, "train": {"examples": None, "batch": 100}}
    ours, theirs = (learning.accuracy(name, **settings) for name in ("rog", "ce"))
    assert np.mean(ours) > np.mean(theirs), "73 % against 70 % when this was written"
    assert learning.no_worse(ours, theirs)


def test_a_network_without_features_is_refused_before_training() -> None:
    net = Featureless(tiny.linear(), "mine.py:Net")
    with pytest.raises(ConfigError, match="for features"):
        make([net])
