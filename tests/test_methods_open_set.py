"""Open-set: pairs, their loss, the weights of outliers, and when they are looked for."""

from __future__ import annotations

import math
from typing import Any

import learning
import numpy as np
import oracles
import pytest
import tiny
import torch

from rte.errors import ConfigError
from rte.methods.open_set import OpenSet, contrastive, partners
from rte.nets.base import Featureless
from rte.parts.outliers import inlier_scores

OUT = torch.tensor([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0], dtype=torch.bool)


def make(build: Any = tiny.linear, **cfg: Any) -> OpenSet:
    torch.manual_seed(0)
    return OpenSet(OpenSet.Config.model_validate(cfg), tiny.task(build))


def known(**cfg: Any) -> OpenSet:
    """After two iterations: outliers, and the sums of their scores."""
    method = make(**cfg)
    method.found.fill_(2)
    method.outlier.copy_(OUT)
    method.scores.copy_(torch.where(OUT, 0.9, 1.9))
    return method


# ---- pairs


def test_each_inlier_has_one_partner_of_each_kind_where_there_is_one() -> None:
    torch.manual_seed(0)
    a, b, same = partners(tiny.Y, OUT)
    found: dict[int, dict[str, int]] = {}
    for one, two, alike in zip(a.tolist(), b.tolist(), same.tolist(), strict=True):
        assert not OUT[one]
        assert one != two
        kind = "own" if tiny.Y[one] == tiny.Y[two] and not OUT[two] else "outlier" if OUT[two] else "other"
        assert alike == (kind == "own")
        assert kind != "outlier" or tiny.Y[one] == tiny.Y[two]
        assert kind not in found.setdefault(one, {})
        found[one][kind] = two
    assert sorted(found) == (~OUT).nonzero().squeeze(1).tolist()
    for one, kinds in found.items():
        label, others = int(tiny.Y[one]), [i for i in range(tiny.N) if i != one]
        wanted = {"other"}
        wanted |= {"own" for i in others if tiny.Y[i] == label and not OUT[i]}
        wanted |= {"outlier" for i in others if tiny.Y[i] == label and OUT[i]}
        assert set(kinds) == wanted


def test_partners_are_drawn_at_random_from_all_that_fit() -> None:
    y, out = torch.tensor([0, 0, 0, 0, 1, 1]), torch.zeros(6, dtype=torch.bool)
    torch.manual_seed(0)
    drawn: dict[bool, set[int]] = {True: set(), False: set()}
    for _ in range(50):
        for one, two, same in zip(*(column.tolist() for column in partners(y, out)), strict=True):
            if one == 0:
                drawn[same].add(two)
    assert drawn == {True: {1, 2, 3}, False: {4, 5}}


@pytest.mark.parametrize("y", [[2], [0, 0], [1, 1, 2]])
def test_small_batches_have_the_pairs_they_can(y: list[int]) -> None:
    a, b, same = partners(torch.tensor(y), torch.zeros(len(y), dtype=torch.bool))
    assert len(a) == len(b) == len(same) == {1: 0, 2: 2, 3: 5}[len(y)]
    a, _, _ = partners(torch.tensor(y), torch.ones(len(y), dtype=torch.bool))
    assert len(a) == 0


def test_the_pair_loss_is_the_formula() -> None:
    one, two = torch.randn(6, 3, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64) / 4
    two[3:] = one[3:] + two[3:]
    same = torch.tensor([True, False, True, False, False, True])
    expected = []
    for u, v, alike in zip(one.tolist(), two.tolist(), same.tolist(), strict=True):
        d = math.sqrt(sum((p - q) ** 2 for p, q in zip(u, v, strict=True)))
        expected.append(d**2 if alike else max(1 - d, 0) ** 2)
    assert 0 in expected
    np.testing.assert_allclose(contrastive(one, two, same).numpy(), expected, rtol=1e-5, atol=1e-7)


def test_equal_features_of_different_classes_have_a_finite_gradient() -> None:
    z = torch.zeros(2, 3, requires_grad=True)
    loss = contrastive(z[:1], z[1:], torch.tensor([False]))
    assert tiny.number(loss[0]) == pytest.approx(1.0, abs=1e-3)
    (gradient,) = torch.autograd.grad(loss.sum(), z)
    assert gradient.isfinite().all()


# ---- the objective


@pytest.mark.parametrize(("found", "second", "contrast"), [(0, 0.1, 1.0), (2, 0.1, 1.0), (2, 0.7, 0.3)])
def test_loss_is_the_formula(found: int, second: float, contrast: float) -> None:
    method = known(second=second, contrast=contrast)
    method.found.fill_(found)
    if not found:
        method.outlier.zero_()
    i = [3, 7, 1, 10, 6, 2, 9, 0, 11, 4, 8, 5]
    batch = tiny.batch(i)
    torch.manual_seed(3)
    terms = method.loss(batch, tiny.at(5))
    torch.manual_seed(3)
    out = OUT[i] if found else torch.zeros(12, dtype=torch.bool)
    a, b, same = (column.tolist() for column in partners(batch.y, out))
    logits = tiny.array(method.net(batch.x))  # this network has no features
    nll = -oracles.log_likelihood(logits, batch.y.tolist())
    task = pair = 0.0
    for one, two, alike in zip(a, b, same, strict=True):
        v = 1.0 if not found else second * (0.9 / 2 if out[two] else 1.0)
        d = math.sqrt(((logits[one] - logits[two]) ** 2).sum())
        task += (nll[one] + v * nll[two]) / len(a)
        pair += (d**2 if alike else max(1 - d, 0) ** 2) / len(a)
    assert tiny.number(terms["task"]) == pytest.approx(task, rel=1e-5)
    assert tiny.number(terms["contrast"]) == pytest.approx(pair, rel=1e-5)
    assert tiny.number(terms["loss"]) == pytest.approx(task + contrast * pair, rel=1e-5)
    assert terms["pairs"] == len(a)


def test_a_batch_of_outliers_alone_is_learnt_with_their_weights() -> None:
    method, batch = known(), tiny.batch([3, 4, 9])
    nll = -oracles.log_likelihood(tiny.array(method.net(batch.x)), batch.y.tolist())
    terms = method.loss(batch, tiny.at(5))
    assert tiny.number(terms["loss"]) == pytest.approx(0.1 * 0.45 * nll.mean(), rel=1e-5)


# ---- iterations


def test_outliers_are_looked_for_so_often_and_scores_add_up() -> None:
    method = make(tiny.normed, iterations=4, first=0.1)
    sweep, when, total = tiny.sweep(method), [], np.zeros(tiny.N)
    for epoch in range(20):
        report = method.epoch_start(tiny.at(epoch, 20), sweep)
        if report:
            when.append(epoch)
            total += inlier_scores(sweep(method.features), tiny.Y, tiny.K, neighbours=0.4).double().numpy()
            method.step(tiny.batch(range(12)), tiny.at(epoch, 20), tiny.sgd(method))
            assert report["outliers"] == 4, "half of three, in each of four classes"
    assert when == [2, 8, 14], "after a tenth, and then every 0.9 / 3 of the run; the fourth training is the last"
    np.testing.assert_allclose(method.scores.numpy(), total, rtol=1e-5)
    worst = [min((i for i in range(tiny.N) if tiny.Y[i] == k), key=lambda i: total[i]) for k in range(tiny.K)]
    assert method.outlier.nonzero().squeeze(1).tolist() == sorted(worst)


@pytest.mark.parametrize(("epochs", "times"), [(1, 0), (2, 1), (5, 4), (400, 9)])
def test_at_most_once_in_an_epoch_and_not_before_the_first(epochs: int, times: int) -> None:
    method = make()
    for epoch in range(epochs):
        method.epoch_start(tiny.at(epoch, epochs), tiny.sweep(method))
    assert int(method.found) == times


def test_trust_is_the_mean_score() -> None:
    method = known()
    np.testing.assert_allclose(method.trust(tiny.sweep(method)).numpy(), np.where(OUT, 0.45, 0.95), rtol=1e-6)
    fresh = make()
    expected = oracles.softmax(tiny.array(fresh.net(tiny.images(range(tiny.N)))))[range(tiny.N), tiny.Y]
    np.testing.assert_allclose(fresh.trust(tiny.sweep(fresh)).numpy(), expected, rtol=1e-5)


def test_the_features_of_a_network_that_has_them_are_compared() -> None:
    net, y = tiny.Plain(), torch.arange(20) % 10
    method = OpenSet(OpenSet.Config(), tiny.Task(y, 10, lambda k=0: net))
    x = torch.randn(20, 1, 8, 8)
    assert torch.equal(method.features(x), net.features(x))
    batch = tiny.batch(range(20), make=lambda i, view: x, y=y)
    torch.manual_seed(0)
    pair = method.loss(batch, tiny.at())["contrast"]
    torch.manual_seed(0)
    a, b, same = partners(y, torch.zeros(20, dtype=torch.bool))
    z = net.features(x)
    torch.testing.assert_close(torch.as_tensor(pair), contrastive(z[a], z[b], same).mean())


def test_it_memorises_less_than_cross_entropy() -> None:
    ours, theirs = (learning.accuracy(name, **learning.STILL) for name in ("open_set", "ce"))
    assert min(ours) > max(theirs), "89 % against 67 % when this was written"


def test_a_network_without_features_is_refused_before_training() -> None:
    net = Featureless(tiny.linear(), "mine.py:Net")
    with pytest.raises(ConfigError, match="for features"):
        make([net])
