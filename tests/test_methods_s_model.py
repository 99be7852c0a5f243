"""The S-model: cross-entropy through a noise layer, and where the layer begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy, no_worse

from rte.methods.s_model import SModel
from rte.parts.transition import confusion_matrix

INDEX = [3, 11, 4, 6, 0]


def make(build: Any = tiny.linear, **cfg: Any) -> SModel:
    torch.manual_seed(0)
    return SModel(SModel.Config.model_validate(cfg), tiny.task(build))


def test_the_loss_is_the_cross_entropy_of_the_channelled_prediction() -> None:
    method, batch = make(start=0.0), tiny.batch(INDEX)
    with torch.no_grad():
        method.layer += torch.randn(tiny.K, tiny.K)
    noisy = oracles.softmax(tiny.array(method.predict(batch.x))) @ oracles.softmax(tiny.array(method.layer))
    expected = -np.mean([np.log(noisy[b, y]) for b, y in enumerate(batch.y.tolist())])
    loss = torch.as_tensor(method.loss(batch, tiny.at())["loss"])
    assert tiny.number(loss) == pytest.approx(expected, rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert method.layer.grad is not None
    assert bool(method.layer.grad.abs().sum() > 0)


def test_until_it_is_added_the_layer_is_neither_used_nor_moved() -> None:
    method, batch = make(), tiny.batch(INDEX)
    before = method.layer.detach().clone()
    expected = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist()).mean()
    terms = method.step(batch, tiny.at(), tiny.sgd(method))
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert torch.equal(method.layer.detach(), before)


@pytest.mark.parametrize("soft", [False, True])
def test_the_layer_begins_from_the_confusion_of_predictions_and_labels(soft: bool) -> None:
    method = make([tiny.Table(3 * torch.randn(tiny.N, tiny.K))], soft=soft)
    sweep = tiny.sweep(method, tiny.numbers)
    begun = [e for e in range(10) if not bool(method.added) and method.epoch_start(tiny.at(e), sweep)]
    assert begun == [5]
    counted = confusion_matrix(sweep(method.net).softmax(1), tiny.Y, soft=soft)
    torch.testing.assert_close(method.layer.detach(), (counted + 1e-8).log())
    torch.testing.assert_close(method.layer.detach().softmax(1), counted, atol=1e-6, rtol=1e-5)


def test_a_layer_from_the_start_is_near_the_identity_so_that_classes_keep_their_names() -> None:
    theta = make(start=0.0).layer.detach().softmax(1)
    expected = np.full((tiny.K, tiny.K), 0.46 / (tiny.K - 1))
    np.fill_diagonal(expected, 0.54)
    np.testing.assert_allclose(theta.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(("epochs", "first"), [(1, None), (2, 1), (3, 2), (20, 10)])
def test_the_share_of_the_run_decides_when_and_never_before_an_epoch_was_learnt(epochs: int, first: int | None) -> None:
    method = make()
    added = [e for e in range(epochs) if method.epoch_start(tiny.at(e, epochs), tiny.sweep(method))]
    assert (added[0] if added else None) == first


def test_the_layer_has_no_weight_decay_and_all_parameters_are_moved() -> None:
    groups = make().groups()
    assert [group.decay for group in groups] == [1.0, 0.0]
    assert sum(len(group.parameters) for group in groups) == len(list(make().parameters()))


def test_a_resumed_run_keeps_the_layer() -> None:
    method = make()
    method.epoch_start(tiny.at(5), tiny.sweep(method))
    resumed = make()
    resumed.load_state_dict(method.state_dict())
    assert bool(resumed.added)
    assert torch.equal(resumed.layer, method.layer)
    assert resumed.epoch_start(tiny.at(6), tiny.sweep(method)) == {"diagonal": method._diagonal()}


def test_the_network_alone_is_reported_and_trust_is_the_posterior() -> None:
    method = make(start=0.0)
    x = tiny.images(range(tiny.N))
    torch.testing.assert_close(method.predict(x), method.net(x))
    p, theta = oracles.softmax(tiny.array(method.net(x))), oracles.softmax(tiny.array(method.layer))
    expected = [p[b, y] * theta[y, y] / (p[b] @ theta[:, y]) for b, y in enumerate(tiny.Y.tolist())]
    np.testing.assert_allclose(method.trust(tiny.sweep(method)).numpy(), expected, rtol=1e-5)
    plain = make()
    np.testing.assert_allclose(plain.trust(tiny.sweep(plain)).numpy(), p[np.arange(tiny.N), tiny.Y.numpy()], rtol=1e-5)


def test_pair_noise_is_learnt_no_worse_than_by_cross_entropy() -> None:
    assert no_worse(accuracy("s_model", noise="pair"), accuracy("ce", noise="pair"))  # measured: 0.71 and 0.65
