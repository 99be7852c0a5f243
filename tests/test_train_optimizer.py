"""What the optimiser does in half precision, in pieces, and with numbers that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from tiny import Y, task
from torch import Tensor, nn

from rte.methods.ce import CrossEntropy
from rte.parts.schedules import constant
from rte.train.config import TrainConfig
from rte.train.distributed import World
from rte.train.optimizer import Optimizer


def made(world: World | None = None, **train: object) -> tuple[Optimizer, nn.Module]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 16, 3), nn.Flatten(), nn.Linear(16, 4))
    method = CrossEntropy(CrossEntropy.Config(), task(lambda: net))
    cfg = TrainConfig.model_validate({"lr": constant(0.1), "weight_decay": constant(0.0), **train})
    optimizer = Optimizer(cfg, method, world or World())
    for group in optimizer.torch.param_groups:
        group["lr"] = 0.1
    return optimizer, net


def updated(optimizer: Optimizer, loss: Tensor, first: bool = True, last: bool = True) -> None:
    optimizer.update(loss, 1.0, first=first, last=last)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "muon"])
def test_a_step_under_autocast_is_the_step_outside_of_it(optimizer: str) -> None:
    """Muon multiplies matrices, which autocast would do in bfloat16: 2 % off in norm."""
    x, found = torch.randn(8, 2, 3, 3, generator=torch.Generator().manual_seed(1)), []
    for half in (False, True):
        one, net = made(optimizer=optimizer)
        loss = nn.functional.cross_entropy(net(x), Y[:8])
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            updated(one, loss)
        found.append([p.detach().clone() for p in net.parameters()])
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_a_second_loss_in_the_same_step_is_that_of_the_new_weights() -> None:
    one, net = made()
    x = torch.randn(8, 2, 3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        updated(one, nn.functional.cross_entropy(net(x).float(), Y[:8]))
        second = net(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(second, net(x)), "autocast keeps its copies of weights until it is left"


def test_looking_without_gradient_before_the_loss_leaves_the_gradient() -> None:
    """Earlier versions of torch kept copies of weights that no gradient goes through (issues 112583 and 158232)."""
    one, net = made()
    x = torch.randn(8, 2, 3, 3)
    before = [p.detach().clone() for p in net.parameters()]
    with torch.autocast("cpu", torch.bfloat16):
        with torch.no_grad():
            net(x)
        updated(one, nn.functional.cross_entropy(net(x).float(), Y[:8]))
    assert all(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def sick(net: nn.Module, x: Tensor) -> Tensor:
    return net(x).sum() * float("nan")


def constant_nan(net: nn.Module, x: Tensor) -> Tensor:
    return net(x).sum() + float("nan")  # whose gradient is finite


def steep(net: nn.Module, x: Tensor) -> Tensor:
    return torch.sqrt(0.0 * net(x).sum() ** 2)  # whose value is finite


@pytest.mark.parametrize("loss", [sick, constant_nan, steep])
@pytest.mark.parametrize("first", [True, False])
def test_a_loss_or_gradient_that_is_not_finite_moves_nothing(
    loss: Callable[[nn.Module, Tensor], Tensor], first: bool
) -> None:
    one, net = made(optimizer="adam", clip=1.0)
    before, x = [p.detach().clone() for p in net.parameters()], torch.randn(8, 2, 3, 3)
    pieces = [loss(net, x), nn.functional.cross_entropy(net(x), Y[:8])]
    for number, piece in enumerate(pieces if first else reversed(pieces)):
        updated(one, piece, first=number == 0, last=number == 1)
    assert one.broken
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def test_a_bad_loss_in_another_process_is_known_in_this_one() -> None:
    class Two(World):
        def average(self, tensors: Iterable[Tensor], weight: float = 1.0) -> None:
            *_, fine = list(tensors)
            fine.mul_(0.5)  # the other process has 0 there

    one, net = made(Two(0, 2))
    updated(one, nn.functional.cross_entropy(net(torch.randn(8, 2, 3, 3)), Y[:8]))
    assert one.broken


def test_the_mean_of_ones_over_any_number_of_processes_is_fine() -> None:
    class Many(World):
        def average(self, tensors: Iterable[Tensor], weight: float = 1.0) -> None:
            share = torch.tensor(1.0) * (weight / self.size)
            for tensor in tensors:
                tensor.copy_(sum([tensor * share] * self.size, torch.zeros(())))

    for size in (3, 7, 48, 1000):
        one, net = made(Many(0, size))
        updated(one, nn.functional.cross_entropy(net(torch.randn(8, 2, 3, 3)), Y[:8]))
        assert not one.broken


def test_clipping_is_by_the_norm_of_all_gradients() -> None:
    one, net = made(clip=1e-3, momentum=0.0, nesterov=False)
    before = [p.detach().clone() for p in net.parameters()]
    updated(one, 100 * nn.functional.cross_entropy(net(torch.randn(8, 2, 3, 3)), Y[:8]))
    moved = torch.cat([(a - b).flatten() for a, b in zip(before, net.parameters(), strict=True)])
    assert float(moved.detach().norm()) == pytest.approx(0.1 * 1e-3, rel=1e-3)
