"""What a method may ask of the trainer, beyond a loss: each point of `rte.methods.base`, with a method of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from conftest import quick
from test_train_trainer import StopAfter, same, stopped_and_resumed, trainer
from torch import Tensor, nn

from rte import registry
from rte.config import RunConfig
from rte.errors import TrainingError
from rte.methods.base import Clock, Group, Method, Pass, Progress, Task, Terms
from rte.methods.ce import CrossEntropy
from rte.parts.losses import cross_entropy
from rte.train.trainer import Interrupted, Trainer
from rte.views.batch import Batch


def run_with(cls: type[Method], config: RunConfig, monkeypatch: pytest.MonkeyPatch, **rest: Any) -> Trainer:
    monkeypatch.setattr(registry, "method", lambda name, **_: cls)
    return trainer(config, **rest)


class Plain(Method):
    """Cross-entropy with one network."""

    summary = "for these tests"
    Config = CrossEntropy.Config

    def __init__(self, cfg: Any, task: Task) -> None:
        super().__init__(cfg, task)
        self.task = task
        self.net = task.build()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return {"loss": cross_entropy(self.net(batch.x), batch.y).mean()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits


# ---- clock


@pytest.mark.core
def test_schedules_and_rate_follow_the_clock_which_is_asked_once_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    rates: list[tuple[float, float]] = []

    class Slow(Plain):
        def clock(self, t: Progress) -> Clock:
            asked.append(t.step)
            return Clock(Progress(9, 10), rate=0.25)  # as if nine tenths of the run were over

        def loss(self, batch: Batch, t: Progress) -> Terms:
            rates.append((t.lr, batch.views.shape[-1]))
            return super().loss(batch, t)

    train = {"lr": {"kind": "linear", "start": 0.1, "end": 0.0}, "epochs": 2}
    train["resolution"] = {"kind": "steps", "values": [0.5, 1.0], "fractions": [0.0, 0.8]}
    made = run_with(Slow, quick("ce", train=train), monkeypatch)
    made.fit()
    assert asked == list(range(made.step))
    assert rates == [(pytest.approx(0.25 * 0.01), 8)] * made.step, "the step sees its learning rate"


# ---- updates


class TwoLosses(Plain):
    """A parameter for each of two losses: each has a gradient in its own update only."""

    def __init__(self, cfg: Any, task: Task) -> None:
        super().__init__(cfg, task)
        self.pair = nn.Parameter(torch.zeros(2))

    def step(self, batch: Batch, t: Progress, update: Any) -> Terms:
        for k in range(2):
            update(self.pair[k] + 0 * self.net(batch.x).sum())
        return {"loss": 0.0}


@pytest.mark.core
@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_each_of_two_updates_has_the_gradient_of_the_whole_batch(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce", train={"accumulate": pieces, "epochs": 1})
    made = run_with(TwoLosses, config, monkeypatch)
    found: list[list[float]] = []
    made.optimizer.torch.register_step_pre_hook(lambda *_: found.append(made.method.pair.grad.tolist()))
    next(made.steps())
    np.testing.assert_allclose(found, [[1.0, 0.0], [0.0, 1.0]], atol=1e-6)


class Dependent(Plain):
    """The second loss is taken with the weights that the first update has made."""

    def step(self, batch: Batch, t: Progress, update: Any) -> Terms:
        for _ in range(2):
            update(cross_entropy(self.net(batch.x), batch.y).mean())
        return {"loss": 0.0}


def test_the_second_update_sees_the_first_one_s_weights_in_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {}
    monkeypatch.setattr("rte.nets.build", lambda name, **size: tiny.Plain())
    for pieces in (1, 2):
        config = quick("ce", train={"accumulate": pieces, "epochs": 1, "compile": False})
        one = run_with(Dependent, config, monkeypatch)
        one.fit()
        made[pieces] = one.method.state_dict()
    for name, value in made[1].items():
        torch.testing.assert_close(value, made[2][name], rtol=1e-4, atol=1e-6)


def test_several_pieces_resume_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "method", lambda name, **_: Dependent)
    config = quick("ce", train={"accumulate": 2}, net={"dropout": 0.2})
    straight = trainer(config)
    straight.fit()
    assert same(straight.method, stopped_and_resumed(config, 3).method)


# ---- passes


@pytest.mark.core
def test_an_index_that_stands_several_times_in_a_pass_gets_other_views_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[int, list[Tensor]] = {}

    class Repeats(Plain):
        def passes(self, t: Progress) -> Sequence[Pass]:
            return [Pass(index=torch.tensor([3, 3, 3, 3, 5, 8]), batch=2)]

        def loss(self, batch: Batch, t: Progress) -> Terms:
            for i, x in zip(batch.i.tolist(), batch.x, strict=True):
                seen.setdefault(i, []).append(x.clone())
            return super().loss(batch, t)

    config = quick("ce", train={"epochs": 1}, views={"pad": 3, "flip": True})
    run_with(Repeats, config, monkeypatch).fit()
    assert [len(seen[i]) for i in (3, 5, 8)] == [4, 1, 1]
    different = {tuple(x.flatten().tolist()) for x in seen[3]}
    assert len(different) >= 3, "49 places and two sides: four draws that are all alike would be a miracle"


# ---- the end of an epoch


class Head(Plain):
    """A head that is fitted after training: class means of the features."""

    means: Tensor

    def __init__(self, cfg: Any, task: Task) -> None:
        super().__init__(cfg, task)
        self.register_buffer("means", torch.zeros(task.classes, self.net.width))
        self.ends: list[int] = []

    def epoch_end(self, t: Progress, sweep: Any) -> Terms:
        self.ends.append(t.epoch)
        features = sweep(self.net.features)
        assert features.shape == (len(self.y), self.net.width)
        for k in range(self.classes):
            self.means[k] = features[self.y == k].mean(0)
        return {"spread": float(self.means.std())}

    def predict(self, x: Tensor) -> Tensor:
        return -torch.cdist(self.net.features(x), self.means)


@pytest.mark.core
def test_a_head_is_fitted_before_each_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce", train={"epochs": 5, "evaluate_every": 2})
    made = run_with(Head, config, monkeypatch)
    made.fit()
    assert isinstance(made.method, Head)
    assert made.method.ends == [1, 3, 4], "0-based; with the last"
    assert made.history[-1]["test"]["top1"] > 0.5, "the class means of a trained network's features are a classifier"


def test_features_and_logits_come_from_one_pass() -> None:
    made = trainer(quick("ce"))
    net, x = made.method.net.eval(), torch.rand(4, 1, 8, 8)
    features, logits = net.with_features(x)
    torch.testing.assert_close(features, net.features(x))
    torch.testing.assert_close(logits, net(x))


# ---- fresh networks, optimiser state, groups


class Restarts(Plain):
    """Begins anew in the second epoch, its optimiser too."""

    def epoch_start(self, t: Progress, sweep: Any) -> Terms:
        if t.epoch == 1:
            self.net.load_state_dict(self.task.build(1).state_dict())
        return {}

    def restarted(self, t: Progress) -> Iterable[nn.Parameter]:
        return self.net.parameters() if t.epoch == 1 else ()


def test_the_kth_network_is_the_same_whenever_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (run_with(Plain, quick("ce"), monkeypatch).method for _ in range(2))
    assert isinstance(a, Plain)
    assert isinstance(b, Plain)
    first = [a.task.build(k) for k in (0, 1, 2)]
    again = [b.task.build(k) for k in (2, 1, 0)][::-1]
    for one, other in zip(first, again, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(first[0].head.weight, first[1].head.weight)
    assert all(torch.equal(p, q) for p, q in zip(a.net.parameters(), a.task.build().parameters(), strict=True))


@pytest.mark.core
def test_optimiser_state_begins_anew_and_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "method", lambda name, **_: Restarts)
    config = quick("ce", train={"epochs": 3})
    straight = trainer(config)
    straight.fit(until=1)
    parameter = next(p for p in straight.method.parameters() if p.requires_grad)
    old = straight.optimizer.torch.state[parameter]["momentum_buffer"].clone()
    steps = straight.steps()
    next(steps)
    new = straight.optimizer.torch.state[parameter]["momentum_buffer"]
    assert parameter.grad is not None
    decayed = parameter.grad.abs().max() * 1.5 + 1.0
    assert not torch.equal(old, new)
    assert float(new.abs().max()) <= float(decayed)
    list(steps)
    straight._close_epoch()
    straight.fit()
    for stop in (straight.step // 3 + 1, straight.step // 2):
        assert same(straight.method, stopped_and_resumed(config, stop).method)


class Grouped(Plain):
    """The head learns ten times as fast, without decay and momentum; the rest does not move."""

    def groups(self) -> Sequence[Group]:
        head = list(self.net.head.parameters())
        others = [p for p in self.net.parameters() if not any(p is q for q in head)]
        return [Group(head, rate=10.0, decay=0.0, momentum=0.0), Group(others, rate=0.0)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "muon"])
def test_groups_have_rates_momentum_and_decay_of_their_own(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce", train={"optimizer": optimizer, "lr": 0.01, "weight_decay": 0.1, "epochs": 1})
    made = run_with(Grouped, config, monkeypatch)
    assert isinstance(made.method, Grouped)
    head = made.method.net.head
    before = {name: p.detach().clone() for name, p in made.method.net.named_parameters()}
    list(made.steps())
    groups = {id(group["params"][0]): group for group in made.optimizer.torch.param_groups}
    own = groups[id(head.weight)]
    assert (own["lr"], own["weight_decay"]) == (pytest.approx(0.1), 0.0)
    assert own.get("momentum", own.get("betas", [None])[0]) == 0.0
    for name, p in made.method.net.named_parameters():
        moved = not torch.equal(p, before[name])
        if name.startswith("head"):
            assert moved
        elif optimizer != "muon" or p.ndim != 4:  # whose filters are kept at a fixed norm
            assert not moved, name
    assert same(made.method, made.method)


# ---- what fails


def test_a_gradient_that_is_not_finite_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cliff(Plain):
        def loss(self, batch: Batch, t: Progress) -> Terms:
            terms = super().loss(batch, t)
            if t.step == 2:  # a finite loss whose gradient is not
                weight = next(self.net.parameters())
                terms["loss"] = terms["loss"] + torch.sqrt(0.0 * weight.sum() ** 2)
            return terms

    saved: dict[str, Any] = {}
    made = run_with(Cliff, quick("ce", train={"checkpoint_minutes": 1e-9}), monkeypatch, saved=saved)
    with pytest.raises(TrainingError, match="not finite"):
        made.fit()
    state = saved["checkpoint"]["method"]
    assert saved["checkpoint"]["step"] <= 2
    assert state


def test_weights_that_are_no_numbers_are_neither_evaluated_nor_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Poisoned(Plain):
        def after_step(self, t: Progress) -> None:
            if t.j == t.J - 1:  # the last step of an epoch, after which nothing looks at a loss
                next(self.net.parameters()).data[0] = float("nan")

    saved: dict[str, Any] = {}
    made = run_with(Poisoned, quick("ce", train={"holdout": 0.1}), monkeypatch, saved=saved)
    with pytest.raises(TrainingError, match="not finite"):
        made.fit()
    assert not saved
    assert not made.history


def test_a_stop_is_heard_within_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: dict[str, Any] = {}
    made = run_with(Plain, quick("ce"), monkeypatch, saved=saved, observer=StopAfter(1))
    with pytest.raises(Interrupted):
        made.fit()
    assert saved["checkpoint"]["step"] == made.step == 1
