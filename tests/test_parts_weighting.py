"""Weights of examples: shares of what is positive, and products of gradients against one gradient at a time."""

from __future__ import annotations

import pytest
import tiny
import torch

from rte.parts.losses import cross_entropy
from rte.parts.weighting import alignment, positive_shares

INDEX = [3, 11, 4, 6, 0, 8]


def test_shares_are_the_positive_parts_divided_by_their_sum() -> None:
    values = torch.tensor([0.5, -2.0, 1.5, 0.0], dtype=torch.float64)
    assert positive_shares(values).tolist() == [0.25, 0.0, 0.75, 0.0]


@pytest.mark.parametrize("values", [[-1.0, -0.5], [0.0], [-3.0]])
def test_where_nothing_is_positive_all_shares_are_zero(values: list[float]) -> None:
    assert positive_shares(torch.tensor(values)).tolist() == [0.0] * len(values)


@pytest.mark.parametrize("net", [tiny.linear, tiny.normed])
def test_alignment_is_the_product_with_each_examples_own_gradient(net: torch.nn.Module) -> None:
    torch.manual_seed(0)
    made, batch = net().double(), tiny.batch(INDEX)  # type: ignore[operator]
    parameters = list(made.parameters())
    direction = [torch.randn_like(p) for p in parameters]
    losses = cross_entropy(made(batch.x.double()), batch.y)
    expected = []
    for k in range(len(INDEX)):  # batch norm makes each loss a function of the whole batch: of the same graph
        grads = torch.autograd.grad(losses[k], parameters, retain_graph=True)
        expected.append(sum(float((g * d).sum()) for g, d in zip(grads, direction, strict=True)))
    found = alignment(losses, parameters, direction)
    assert found.tolist() == pytest.approx(expected, rel=1e-9)
    assert not found.requires_grad


def test_alignment_leaves_the_graph_and_the_gradients_of_parameters_alone() -> None:
    made, batch = tiny.normed(), tiny.batch(INDEX)
    parameters = list(made.parameters())
    losses = cross_entropy(made(batch.x), batch.y)
    alignment(losses, parameters, [torch.ones_like(p) for p in parameters])
    assert all(p.grad is None for p in parameters)
    losses.sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in parameters)


def test_parameters_that_either_side_does_not_depend_on_count_for_nothing() -> None:
    made, other, batch = tiny.linear(), torch.nn.Parameter(torch.ones(3)), tiny.batch(INDEX)
    own = list(made.parameters())
    losses = cross_entropy(made(batch.x), batch.y)
    ones = [torch.ones_like(p) for p in own]
    both = alignment(losses, [*own, other], [*ones, torch.ones(3)])
    torch.testing.assert_close(both, alignment(losses, own, ones))
    assert alignment(losses, own, [None] * len(own)).tolist() == [0.0] * len(INDEX)
