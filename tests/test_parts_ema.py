"""The moving average against its recurrence, in every kind of tensor it meets."""

from __future__ import annotations

import copy
import math

import numpy as np
import oracles
import pytest
import torch
from torch import Tensor, nn

from rte.errors import ConfigError
from rte.parts.ema import EMA, mean_at_first


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dropout(0.5), nn.Linear(4 * 9, 2))


def move(net: nn.Module, seed: int) -> None:
    """A training step's effect: other weights, other statistics, one more batch tracked."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += torch.randn(parameter.shape, generator=random)
    net.train()(torch.randn(8, 3, 5, 5, generator=random).to(next(net.parameters()).dtype))


def numbers(net: nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in net.state_dict().items()}


@pytest.mark.parametrize("warmup", [False, True])
def test_it_follows_the_recurrence(warmup: bool) -> None:
    net = network().double()
    start, average, seen = numbers(net), EMA(net, decay=0.9, warmup=warmup), []
    for k in range(5):
        move(net, k)
        average.update(net)
        seen.append(numbers(net))
    decays = [min(0.9, (1 + k) / (10 + k)) if warmup else 0.9 for k in range(5)]
    found = numbers(average.module)
    for name in start:
        if name.endswith("num_batches_tracked"):
            assert found[name] == 5
        else:
            truth = oracles.moving_average(start[name], [s[name] for s in seen], decays)
            np.testing.assert_allclose(found[name], truth, rtol=1e-12, atol=1e-14, err_msg=name)
    assert int(average.updates) == 5


def test_warmup_ends_at_the_decay() -> None:
    net = nn.Linear(1, 1, bias=False)
    average = EMA(net, decay=0.5, warmup=True)
    nn.init.ones_(net.weight)
    nn.init.zeros_(average.module.weight)
    average.load_state_dict(
        {**average.state_dict(), "updates": torch.tensor(8)}
    )  # (1 + 8) / (10 + 8) = 0.5, from here on the decay is the smaller
    average.update(net)
    average.update(net)
    assert average.module.weight.item() == pytest.approx(1 - 0.5**2)


def test_it_starts_as_a_copy_of_its_own() -> None:
    net = network()
    average = EMA(net)
    before = numbers(net)
    for name, value in numbers(average.module).items():
        np.testing.assert_array_equal(value, before[name])
    move(net, 0)
    for name, value in numbers(average.module).items():
        np.testing.assert_array_equal(value, before[name])


def test_the_decay_can_change() -> None:
    net = nn.Linear(1, 1, bias=False)
    average = EMA(net, decay=0.9)
    nn.init.zeros_(average.module.weight)
    nn.init.ones_(net.weight)
    average.update(net, decay=0.0)
    assert average.module.weight.item() == 1
    nn.init.zeros_(net.weight)
    average.decay = 0.25
    average.update(net)
    assert average.module.weight.item() == pytest.approx(0.25)
    average.update(net, decay=1.0)
    assert average.module.weight.item() == pytest.approx(0.25)


def test_it_predicts_in_evaluation_mode_without_gradient() -> None:
    average = EMA(network())
    parent = nn.ModuleList([average]).train()
    assert parent.training
    assert not any(module.training for module in average.modules())
    assert not any(parameter.requires_grad for parameter in average.parameters())
    x = torch.randn(4, 3, 5, 5, requires_grad=True)
    first, second = average(x), average(x)
    assert torch.equal(first, second)  # dropout would differ
    assert not first.requires_grad
    assert average.train() is average
    assert average.module[1].num_batches_tracked == 0


def test_the_original_keeps_its_mode_and_its_gradients() -> None:
    net = network().train()
    EMA(net)
    assert net.training
    assert all(parameter.requires_grad for parameter in net.parameters())


@pytest.mark.parametrize("warmup", [False, True])
def test_a_restored_state_continues_to_the_last_bit(warmup: bool) -> None:
    net = network()
    average = EMA(net, decay=0.99, warmup=warmup)
    for k in range(3):
        move(net, k)
        average.update(net)
    saved = copy.deepcopy(average.state_dict())
    other = EMA(network(), decay=0.99, warmup=warmup)
    other.load_state_dict(saved)
    for k in range(3, 6):
        move(net, k)
        average.update(net)
        other.update(net)
    for (name, a), (_, b) in zip(average.state_dict().items(), other.state_dict().items(), strict=True):
        assert torch.equal(a, b), name
    assert int(other.updates) == 6


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(self.first(x))
        return out


def test_tied_weights_stay_tied_and_move_once() -> None:
    net = Tied()
    average = EMA(net, decay=0.5)
    start = net.first.weight.detach().clone()
    with torch.no_grad():
        net.first.weight += 1
    average.update(net)
    assert average.module.first.weight is average.module.second.weight
    torch.testing.assert_close(average.module.first.weight, nn.Parameter(start + 0.5, requires_grad=False))


def test_memory_formats_may_differ() -> None:
    net = network().to(memory_format=torch.channels_last)
    average = EMA(net, decay=0.5)
    assert average.module[0].weight.is_contiguous(memory_format=torch.channels_last)
    start = net[0].weight.detach().clone()
    net.to(memory_format=torch.contiguous_format)
    with torch.no_grad():
        net[0].weight += 1
    average.update(net)
    torch.testing.assert_close(average.module[0].weight.detach(), start + 0.5)


def test_other_buffers_are_copied_and_a_network_without_weights_is_fine() -> None:
    net = nn.Module()
    net.register_buffer("seen", torch.tensor([False, True]))
    average = EMA(net)
    net.seen = torch.tensor([True, True])
    average.update(net)
    assert average.module.seen.tolist() == [True, True]


def test_it_moves_with_mixed_precision_weights() -> None:
    net = nn.Sequential(nn.Linear(2, 2).bfloat16(), nn.Linear(2, 2).double())
    average = EMA(net, decay=0.5)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1.0)
        for parameter in average.parameters():
            parameter.fill_(0.0)
    average.update(net)
    assert all((parameter == 0.5).all() for parameter in average.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_it_works_on_cuda() -> None:
    net = network().cuda()
    average = EMA(net, decay=0.5, warmup=True)
    start = net[4].weight.detach().clone()
    with torch.no_grad():
        net[4].weight += 1
    average.update(net)  # k = 0: a = 0.1
    torch.testing.assert_close(average.module[4].weight.detach(), start + 0.9)
    assert average.updates.is_cuda


@pytest.mark.parametrize("decay", [-0.1, 1.1, math.nan])
def test_a_decay_outside_its_range_is_refused(decay: float) -> None:
    with pytest.raises(ConfigError, match=f"is {decay}; give a number from 0 to 1"):
        EMA(nn.Linear(1, 1), decay=decay)
    with pytest.raises(ConfigError, match="give a number from 0 to 1"):
        EMA(nn.Linear(1, 1)).update(nn.Linear(1, 1), decay=decay)


def test_another_network_is_refused_and_nothing_moves() -> None:
    average = EMA(nn.Linear(2, 2))
    before = numbers(average)
    for other in (nn.Linear(3, 2), nn.Linear(2, 2, bias=False)):
        with pytest.raises(ConfigError, match="another shape"):
            average.update(other)
    for name, value in numbers(average).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # torch's own
def test_the_copy_of_a_compiled_network_is_compiled() -> None:
    net = nn.Linear(2, 2)
    assert EMA(net).module._compiled_call_impl is None
    net.compile()
    assert EMA(net).module._compiled_call_impl is not None


def test_warmup_does_not_wait_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Linear(1, 1)
    average = EMA(net, decay=0.9, warmup=True)
    restored = EMA(net, decay=0.9, warmup=True)
    for _ in range(3):
        average.update(net)
    restored.load_state_dict(average.state_dict())
    nn.init.ones_(net.weight)
    restored.update(net)  # looks the number up once after it was restored
    monkeypatch.setattr(torch.Tensor, "__int__", lambda self: pytest.fail("waited"))
    average.update(net)
    assert torch.equal(average.module.weight, restored.module.weight)
    restored.update(net)


def test_an_average_that_is_the_plain_mean_at_first() -> None:
    assert [mean_at_first(0.75, step) for step in range(5)] == pytest.approx([1 / 2, 2 / 3, 0.75, 0.75, 0.75])
