"""Several networks: who learns when, what they say together, and runs that go on with whose turn it was."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from conftest import quick
from test_train_trainer import same, stopped_and_resumed, trainer
from torch import nn

from rte.config import RunConfig
from rte.errors import ConfigError
from rte.methods.base import Progress
from rte.parts import selftune
from rte.parts.members import Members, assembled, each, take_turns
from rte.parts.selftune import SHORT
from rte.train.trainer import Trainer


@pytest.fixture(autouse=True)
def _as_if_images_were_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lest so few as tests have keep examples from being chosen by their pull."""
    monkeypatch.setattr(selftune, "MANY", 1)


def three() -> Members:
    torch.manual_seed(0)
    return Members(lambda: nn.Linear(4, 3), 3)


def test_one_at_a_time_learns() -> None:
    members, x = three(), torch.randn(5, 4)
    for step, turn in ((0, 0), (4, 1), (8, 2)):
        take_turns(members, step)
        members.zero_grad()
        out = members(x)
        assert torch.equal(out, members.networks[turn](x))
        out.sum().backward()
        assert [net.weight.grad is not None for net in members.networks] == [k == turn for k in range(3)]


def test_together_they_say_their_mean_probabilities() -> None:
    members, x = three().eval(), torch.randn(5, 4)
    expected = torch.stack([net(x).double().softmax(1) for net in members.networks]).mean(0)
    torch.testing.assert_close(members(x).double().exp(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(members(x).softmax(1).double(), expected, rtol=1e-5, atol=1e-6)


def test_one_network_is_left_as_it_is() -> None:
    net = nn.Linear(4, 3)
    assert assembled(lambda: net, 1)() is net
    take_turns(net, 7)
    t = Progress(3, 10, step=30, steps=100)
    assert each(t, 1) is t


def test_each_has_its_share_of_the_epochs() -> None:
    t = each(Progress(7, 25, step=70, steps=100), 2)
    assert (t.epoch, t.epochs, t.fraction) == (3, 13, 0.7)


# ---- in a run

CHOSEN = {"auto": True, "q": 0.7, "jsd_weight": 0.0, "ecr_weight": 0.0, "members": 2}


def chosen(**method: Any) -> RunConfig:
    return quick("rte", method={**CHOSEN, **method}, noise={"name": "symmetric", "ratio": 0.2}, train={"epochs": 6})


@cache
def straight_through() -> Trainer:
    made = trainer(chosen())
    start = [[p.clone() for p in net.parameters()] for net in made.method.student.networks]  # type: ignore[union-attr]
    made.fit()
    for net, before in zip(made.method.student.networks, start, strict=True):  # type: ignore[union-attr, arg-type]
        assert any(not torch.equal(p, old) for p, old in zip(net.parameters(), before, strict=True)), "both learn"
    first, second = (net.state_dict() for net in made.method.student.networks)  # type: ignore[union-attr]
    assert any(not torch.equal(first[key], second[key]) for key in first), "each for itself"
    return made


@pytest.mark.parametrize("stop", [1, 12, 17])  # the first step, between two epochs, in the middle of one
def test_a_run_of_two_resumes_bit_for_bit(stop: int) -> None:
    straight, resumed = straight_through(), stopped_and_resumed(chosen(), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


@pytest.mark.parametrize(("members", "epochs", "eager"), [(1, SHORT + 1, False), (2, 2 * SHORT, True)])
def test_a_run_is_as_long_as_each_of_them_sees_it(members: int, epochs: int, eager: bool) -> None:
    config = chosen(members=members, task_loss="forward", visits=0.5)
    made = trainer(config.with_train(epochs=epochs))
    made.method.noise.mean.fill_(0.2)  # type: ignore[union-attr, operator]
    made.method.noise.count.fill_(1000)  # type: ignore[union-attr, operator]
    t = Progress(epochs // 2, epochs, step=epochs // 2, steps=epochs)
    made.method.epoch_start(t, made._sweep)
    assert made.method.visits.begun == eager  # type: ignore[union-attr]


def test_generations_of_two_are_taught_by_both() -> None:
    settings = {"auto": False, "generations": 2, "members": 2, "views": 1, "jsd_views": 1, "task_view": "strong"}
    made = trainer(chosen(**settings))
    made.fit()
    targets = made.method.heirs.targets  # type: ignore[union-attr]
    torch.testing.assert_close(targets.sum(1), torch.ones(len(targets)))  # type: ignore[arg-type]
    assert len(made.method.student.networks) == 2  # type: ignore[union-attr, arg-type]


def test_none_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="members"):
        chosen(members=0)
