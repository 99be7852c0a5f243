"""SSR+: relabelling anew in each epoch, selection by neighbours, balanced draws, consistency of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods.ssr_plus import PLAN, SelectionRelabelling
from rte.parts.mixing import draw
from rte.parts.voting import balanced, vote
from rte.views.batch import Batch, ViewPlan

X, ALL = [3, 7, 1, 10], [0, 5, 2, 9, 4]


def make(build: Any = tiny.normed, **cfg: Any) -> SelectionRelabelling:
    torch.manual_seed(0)
    return SelectionRelabelling(SelectionRelabelling.Config.model_validate(cfg), tiny.task(build))


def both(i: list[int] = ALL, x: list[int] | None = X) -> Batch:
    second = None if x is None else tiny.batch(x, ViewPlan(weak=1, strong=2))
    return tiny.batch(i, PLAN, second=second)


@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_loss_is_the_formula(alpha: float) -> None:
    method, batch = make(alpha=alpha, consistency=0.7), both()
    method.labels.copy_((tiny.Y + 1) % tiny.K)
    method.eval()  # so that the order of looks does not matter
    assert batch.second is not None
    torch.manual_seed(5)
    share, order = draw(2 * len(X), alpha, dominant=True)
    y = np.eye(tiny.K)[method.labels[X].tolist() * 2]
    x = tiny.array(torch.cat([batch.second.strong(0), batch.second.strong(1)]))
    x, y = (share * values + (1 - share) * values[order.numpy()] for values in (x, y))
    logits = tiny.array(method.predict(torch.tensor(x, dtype=torch.float32)))
    expected = -(y * np.log(oracles.softmax(logits))).sum(1).mean()
    z = tiny.array(method.project(method.net.features(batch.weak(0))))
    hoped = tiny.array(method.foresee(method.project(method.net.features(batch.strong(0)))))
    cosine = (z * hoped).sum(1) / np.linalg.norm(z, axis=1) / np.linalg.norm(hoped, axis=1)
    torch.manual_seed(5)
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected - 0.7 * cosine.mean(), rel=1e-4)


def test_the_weak_view_is_a_constant_target() -> None:
    """One direction only: through the strong view."""
    method, seen = make(), []
    method.foresee.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    method.project.register_forward_hook(lambda module, args, out: out.retain_grad())
    codes: list[torch.Tensor] = []
    method.project.register_forward_hook(lambda module, args, out: codes.append(out))
    torch.as_tensor(method.loss(both(x=None), tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    assert codes[0].grad is None
    assert codes[1].grad is not None
    assert codes[1].grad.abs().max() > 0


def test_labels_are_replaced_where_the_network_is_sure_and_anew_from_the_given_ones() -> None:
    logits = torch.zeros(tiny.N, tiny.K)
    logits[0, 3] = logits[1, 3] = 9.0
    table = tiny.Table(logits)
    method = make([table], sure=0.9)
    sweep = tiny.sweep(method, tiny.numbers)
    expected = tiny.Y.clone()
    expected[:2] = 3
    report = method.epoch_start(tiny.at(), sweep)
    assert method.labels.tolist() == expected.tolist()
    assert tiny.number(report["relabelled"]) == pytest.approx(2 / tiny.N)
    with torch.no_grad():
        table.rows[1, 3] = 0.0
    method.epoch_start(tiny.at(1), sweep)
    expected[1] = tiny.Y[1]
    assert method.labels.tolist() == expected.tolist(), "what it was sure of before is forgotten"


def test_labels_that_win_the_vote_are_kept_and_drawn_in_balance() -> None:
    method = make([tiny.Table(torch.randn(tiny.N, tiny.K))], sure=0.7, neighbours=3)
    sweep = tiny.sweep(method, tiny.numbers)
    report = method.epoch_start(tiny.at(), sweep)
    rows = method.net.rows.detach()
    votes = vote(rows, method.labels, tiny.K, 1)  # 0.4 of a mean class of three
    kept = votes.gather(1, method.labels[:, None]).squeeze(1) >= votes.max(1).values
    draws = balanced(method.labels, kept, rows.softmax(1).max(1).values)
    assert torch.equal(method.draws, draws)
    assert tiny.number(report["kept"]) == pytest.approx(float(kept.float().mean()))
    (one,) = method.passes(tiny.at())
    assert one.index is None
    assert one.second is not None
    assert one.second.tolist() == [i for i in range(tiny.N) for _ in range(int(draws[i]))]
    classes = method.labels[one.second].bincount()
    assert len(set(classes[classes > 0].tolist())) == 1


def test_a_single_example_or_nothing_kept_trains_all_the_same() -> None:
    method = make(consistency=0.0)
    method.step(both(x=None), tiny.at(), tiny.sgd(method))
    method = make()
    terms = method.step(both([4]), tiny.at(), tiny.sgd(method))
    assert "alike" not in terms
    assert np.isfinite(tiny.number(terms["loss"]))


def test_trust_is_the_vote_for_the_given_label_over_the_largest() -> None:
    y = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    given = y.clone()
    given[0] = 2
    features = 5.0 * torch.nn.functional.one_hot(y, tiny.K).float() + 0.1 * torch.randn(12, tiny.K)
    torch.manual_seed(0)
    config = SelectionRelabelling.Config(sure=1.0)
    method = SelectionRelabelling(config, tiny.Task(given, 3, lambda k=0: tiny.Table(features)))
    method.epoch_start(tiny.at(), tiny.sweep(method, tiny.numbers))
    trust = method.trust(tiny.sweep(method, tiny.numbers))
    assert trust.shape == (12,)
    assert trust[1:].min() > trust[0] or trust[0] == 1.0


def test_it_learns_more_from_noisy_digits_than_cross_entropy() -> None:
    assert np.mean(accuracy("ssr_plus", seeds=(0,))) > np.mean(accuracy("ce", seeds=(0,))) + 0.03
