"""Muon: orthogonal updates for filters, Nesterov SGD for the rest, exact resume."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rte.train.muon import REST_MOMENTUM, REST_RATE, Muon, orthogonal


@pytest.mark.parametrize("shape", [(8, 27), (27, 8), (16, 16), (1, 9)])
def test_the_iteration_moves_singular_values_and_nothing_else(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    u, s, v = np.linalg.svd(matrix.numpy() / np.linalg.norm(matrix.numpy()), full_matrices=False)
    for _ in range(3):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    np.testing.assert_allclose(orthogonal(matrix).numpy(), u @ np.diag(s) @ v, atol=1e-12)


def test_more_rounds_bring_singular_values_near_one() -> None:
    matrix = torch.randn(16, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(orthogonal(matrix, rounds=5))
    assert ((values > 0.6) & (values < 1.25)).all()


def test_no_gradient_direction_is_no_nan() -> None:
    assert torch.equal(orthogonal(torch.zeros(3, 5)), torch.zeros(3, 5))


def test_the_rest_is_nesterov_sgd() -> None:
    torch.manual_seed(0)
    ours = nn.Linear(4, 3)
    theirs = copy.deepcopy(ours)
    mine = Muon(ours.parameters(), lr=0.1)
    reference = torch.optim.SGD(
        theirs.parameters(), lr=0.1 * REST_RATE, momentum=REST_MOMENTUM, nesterov=True, weight_decay=0.01
    )
    for group in mine.param_groups:
        group["weight_decay"] = 0.01
    for k in range(5):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(k))
        for net, optimiser in ((ours, mine), (theirs, reference)):
            optimiser.zero_grad()
            net(x).square().sum().backward()
            optimiser.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_filter_step_as_written_down() -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(2, 3, 3, bias=False).double()
    before, grads = layer.weight.detach().clone(), torch.randn(2, 3, 2, 3, 3, dtype=torch.float64)
    optimiser = Muon(layer.parameters(), lr=0.1, momentum=0.6)
    for grad in grads:
        layer.weight.grad = grad
        optimiser.step()
    w, velocity = before.numpy().reshape(3, -1), np.zeros((3, 18))
    for grad in grads.numpy().reshape(2, 3, -1):
        velocity = 0.6 * velocity + grad
        update = orthogonal(torch.from_numpy(grad + 0.6 * velocity)).numpy()
        w = w * np.sqrt(3) / np.linalg.norm(w) - 0.1 * update
    np.testing.assert_allclose(layer.weight.detach().numpy().reshape(3, -1), w, atol=1e-12)


def test_a_restored_state_goes_on_exactly() -> None:
    def train(net: nn.Module, optimiser: Muon, steps: range) -> None:
        for k in steps:
            x = torch.randn(4, 1, 6, 6, generator=torch.Generator().manual_seed(k))
            optimiser.zero_grad(set_to_none=True)
            net(x).square().mean().backward()
            optimiser.step()

    def fresh() -> tuple[nn.Module, Muon]:
        torch.manual_seed(3)
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(64, 2))
        return net, Muon(net.parameters(), lr=0.05)

    whole, optimiser = fresh()
    train(whole, optimiser, range(6))
    half, first = fresh()
    train(half, first, range(3))
    again, second = fresh()
    again.load_state_dict(half.state_dict())
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    train(again, second, range(3, 6))
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_parameter_without_gradient_stays() -> None:
    layer = nn.Conv2d(1, 2, 3)
    before = layer.weight.detach().clone()
    Muon(layer.parameters(), lr=0.1).step()
    assert torch.equal(layer.weight, before)
