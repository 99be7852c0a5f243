"""Margins seen in passing: those of the method's own forward passes, added to the right examples."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from conftest import quick
from test_train_trainer import trainer
from torch import Tensor, nn

from rte.train.margins import PARTS, Margins, margin, mark, part_of
from rte.views.batch import Batch, ViewPlan

N, K = 6, 3
Y = torch.tensor([0, 1, 2, 0, 1, 2])


@dataclass
class At:
    fraction: float
    epoch: int = 0
    epochs: int = 1


class Net(nn.Module):
    """Logits are what comes in."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def batch(i: Tensor, second: Batch | None = None, views: int = 1) -> Batch:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(views * len(i), K)).astype(np.float32))
    return Batch(x, Y[i], i, ViewPlan(weak=1, strong=views - 1), second)


def reference(logits: Tensor, y: Tensor) -> np.ndarray:
    rows = logits.double().numpy()
    return np.array([row[k] - max(row[j] for j in range(K) if j != k) for row, k in zip(rows, y.tolist(), strict=True)])


def watched() -> tuple[nn.Module, Margins]:
    method = nn.Module()
    method.net = mark(Net())
    return method, Margins(method, N, K, torch.device("cpu"))


def test_the_margin_is_the_given_logit_minus_the_best_other() -> None:
    logits = torch.from_numpy(np.random.default_rng(1).normal(size=(N, K)))
    np.testing.assert_allclose(margin(logits, Y).numpy(), reference(logits, Y))


def test_what_the_networks_make_of_a_batch_is_added_by_index_and_part_of_the_run() -> None:
    method, margins = watched()
    other = batch(torch.tensor([1]))
    one = batch(torch.tensor([4, 2, 0]), other, views=3)
    with margins.watching(one, At(0.99)):
        method.net(one.views)  # weak views, then strong ones: the weak ones count
        method.net(one.x)
        copy.deepcopy(method.net)(one.x)
        method.net(other.x)
        method.net(one.x.clone())  # not the views of the batch: mixed, or of another network's making
        method.net(one.strong(0))
    method.net(one.x)  # nobody watches
    expected = np.zeros((N, 2, PARTS))
    expected[[4, 2, 0], 0, -1] = 3 * reference(2 * one.x, one.y)
    expected[[4, 2, 0], 1, -1] = 3
    expected[1, :, -1] = reference(2 * other.x, other.y)[0], 1
    np.testing.assert_allclose(margins.table.numpy(), expected, rtol=1e-5)


def test_an_example_that_is_drawn_twice_counts_twice() -> None:
    method, margins = watched()
    one = batch(torch.tensor([3, 3]))
    with margins.watching(one, At(0.0)):
        method.net(one.x)
    np.testing.assert_allclose(margins.table[3, 0, 0], reference(2 * one.x, one.y).sum(), rtol=1e-5)
    assert margins.table[3, 1, 0] == 2


def test_a_sweep_counts_if_it_is_of_logits() -> None:
    _, margins = watched()
    margins.swept(torch.ones(N, K + 1), Y, At(0.5))
    assert not margins.table.any()
    margins.swept(3 * torch.eye(K)[Y], Y, At(0.5))
    assert margins.seen(At(0.5))
    assert not margins.seen(At(0.2))
    np.testing.assert_allclose(margins.table[:, 0, 4], 3.0)


def test_parts_of_the_run() -> None:
    assert [part_of(At(f)) for f in (0.0, 0.124, 0.126, 0.999, 1.0)] == [0, 0, 1, 7, 7]


def test_methods_that_never_look_at_weak_views_look_when_evaluated() -> None:
    made = trainer(quick("mixup"))
    made.fit()
    assert made.margins.table[:, 1].sum(1).min() == 2


def test_a_checkpoint_of_an_earlier_version_has_none() -> None:
    made = trainer(quick("ce", train={"epochs": 1}))
    made.fit()
    state = made.checkpoint()
    del state["margins"]
    other = trainer(quick("ce", train={"epochs": 1}))
    other.restore(state)
    assert not other.margins.table.any()
