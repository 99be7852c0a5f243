"""The loop's promises: clean stops, finite losses, checkpoints. Those about every method: test_methods_contract.py."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick

from rte import registry
from rte.config import RunConfig
from rte.data.types import Dataset
from rte.errors import TrainingError
from rte.methods.base import Method, Progress
from rte.run.build import load_dataset, make_trainer, prepare
from rte.train.trainer import Interrupted, Trainer


def trainer(
    config: RunConfig, saved: dict[str, Any] | None = None, dataset: Dataset | None = None, **kwargs: Any
) -> Trainer:
    prepared = prepare(config, dataset or load_dataset(config, None))
    keep = saved if saved is not None else {}
    made, _ = make_trainer(prepared, save=keep.__setitem__, **kwargs)
    return made


def same(a: Method, b: Method) -> bool:
    """Bit for bit; what is not known yet, a NaN, is like another."""
    left, right = a.state_dict(), b.state_dict()
    return left.keys() == right.keys() and all(_alike(value, right[key]) for key, value in left.items())


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    return torch.equal(one.isnan(), two.isnan()) and torch.equal(one.nan_to_num(), two.nan_to_num())


class StopAfter:
    """An observer that asks for a stop, as a signal would, after some steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def epoch(self, epoch: int, scores: Any) -> None: ...


def stopped_and_resumed(config: RunConfig, stop: int) -> Trainer:
    """A run that was asked to end after so many steps, and then went on to its end from what it had saved."""
    saved: dict[str, Any] = {}
    with pytest.raises(Interrupted):
        trainer(config, saved, observer=StopAfter(stop)).fit()
    made = trainer(config)
    made.restore(saved["checkpoint"])
    made.fit()
    return made


@pytest.mark.parametrize("term", ["jsd", "task"])
def test_a_loss_that_is_not_finite_stops_the_run_and_spares_the_weights(
    term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer(quick("rte"))
    healthy = type(made.method).loss

    def sick(self: Method, batch: Any, t: Progress) -> Any:
        terms = healthy(self, batch, t)
        if t.step == 2:
            terms[term] = torch.tensor(float("nan"))
            terms["loss"] = terms["loss"] + terms[term]
        return terms

    before: dict[str, torch.Tensor] = {}

    class Watch:
        def step(self, t: Progress, terms: dict[str, float]) -> None:
            before.update({key: value.clone() for key, value in made.method.state_dict().items() if "student" in key})

        def epoch(self, epoch: int, scores: Any) -> None: ...

    made.observer = Watch()
    monkeypatch.setattr(type(made.method), "loss", sick)
    with pytest.raises(TrainingError, match=rf"step 2 .*'{term}' is nan"):
        made.fit()
    after = made.method.state_dict()
    weights = [key for key in before if key.endswith("weight")]
    assert weights
    assert all(torch.equal(before[key], after[key]) for key in weights)


def test_the_learning_rate_follows_its_schedule_and_terms_are_observed() -> None:
    seen: list[tuple[Progress, dict[str, float]]] = []

    class Watch:
        def step(self, t: Progress, terms: dict[str, float]) -> None:
            seen.append((t, terms))

        def epoch(self, epoch: int, scores: Any) -> None: ...

    config = quick("rte", train={"lr": {"kind": "linear", "start": 0.1, "end": 0.0}})
    trainer(config, observer=Watch()).fit()
    steps = len(seen)
    assert [t.step for t, _ in seen] == list(range(steps))
    np.testing.assert_allclose([terms["lr"] for _, terms in seen], 0.1 * (1 - np.arange(steps) / steps))
    assert {"loss", "task", "jsd", "ecr", "q", "lr"} <= seen[-1][1].keys()


def test_clipping_bounds_the_update() -> None:
    config = quick("ce", train={"clip": 1e-6, "lr": 0.1, "weight_decay": 0.0, "epochs": 1})
    made = trainer(config)
    before = [p.detach().clone() for p in made.method.parameters()]
    made.fit()
    moved = max(float((p.detach() - q).abs().max()) for p, q in zip(made.method.parameters(), before, strict=True))
    assert 0 < moved < 1e-4


def test_a_checkpoint_is_made_often_enough_within_an_epoch() -> None:
    saves: list[str] = []
    config = quick("ce", train={"epochs": 1, "checkpoint_minutes": 1e-9})
    prepared = prepare(config, load_dataset(config, None))
    made, _ = make_trainer(prepared, save=lambda name, state: saves.append(name))
    made.fit()
    assert saves.count("checkpoint") == made.step + 1


def test_held_out_data_is_kept_aside_and_selects() -> None:
    saved: dict[str, Any] = {}
    config = quick("ce", train={"holdout": 0.2, "epochs": 3})
    prepared = prepare(config, load_dataset(config, None))
    assert len(prepared.val_rows) == round(0.2 * 1297)
    assert not set(prepared.val_rows.tolist()) & set(prepared.train_rows.tolist())
    made = trainer(config, saved)
    made.fit()
    assert made.n == len(prepared.train_rows)
    best = max(made.history, key=lambda entry: entry["val"]["top1"])
    assert saved["selected"]["epoch"] == best["epoch"]


def test_no_threads_stay_behind() -> None:
    before = threading.active_count()
    with pytest.raises(Interrupted):
        trainer(quick("rte"), observer=StopAfter(2)).fit()
    assert threading.active_count() == before


def test_evaluations_can_be_rare_but_the_last_epoch_is_always_evaluated() -> None:
    made = trainer(quick("ce", train={"epochs": 5, "evaluate_every": 2}))
    made.fit()
    assert [entry["epoch"] for entry in made.history] == [2, 4, 5]


class TwoUpdates(Method):
    """What no method here needs yet: two optimiser steps per batch, and labels that are learnt themselves."""

    summary = "for this test"
    Config = registry.method("ce").Config

    def __init__(self, cfg: Any, task: Any) -> None:
        super().__init__(cfg, task)
        self.nets = torch.nn.ModuleList([task.build(0), task.build(1)])
        self.register_buffer("labels", 5 * torch.nn.functional.one_hot(task.y, task.classes).float())

    def step(self, batch: Any, t: Progress, update: Any) -> Any:
        first = torch.nn.functional.cross_entropy(self.nets[0](batch.x), batch.y)
        before = [p.detach().clone() for p in self.nets[1].parameters()]
        update(first)
        assert all(torch.equal(p, q) for p, q in zip(self.nets[1].parameters(), before, strict=True))
        labels = self.labels[batch.i].requires_grad_()
        second = torch.nn.functional.cross_entropy(self.nets[1](batch.x), labels.softmax(1))
        (gradient,) = torch.autograd.grad(second, labels, retain_graph=True)
        update(second)
        self.labels[batch.i] = labels.detach() - 10 * gradient
        return {"loss": first + second, "first": first, "second": second}

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.nets[1](x)
        return logits


def test_the_contract_carries_custom_updates_and_trainable_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce")
    monkeypatch.setattr(registry, "method", lambda name, **_: TwoUpdates)
    straight = trainer(config)
    start = straight.method.state_dict()["labels"].clone()
    straight.fit()
    assert not torch.equal(start, straight.method.state_dict()["labels"])
    saved: dict[str, Any] = {}
    first = trainer(config, saved, observer=StopAfter(3))
    with pytest.raises(Interrupted):
        first.fit()
    second = trainer(config)
    second.restore(saved["checkpoint"])
    second.fit()
    assert same(straight.method, second.method)


def test_resolution_follows_its_schedule_and_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    rising = {"kind": "steps", "values": [0.5, 1.0], "fractions": [0.0, 0.5]}
    config = quick("rte", train={"resolution": rising})
    straight, sides = trainer(config), []
    plain = straight.method.step

    def step(batch: Any, t: Progress, update: Any) -> Any:
        sides.append((t.fraction, batch.views.shape[-1]))
        return plain(batch, t, update)

    monkeypatch.setattr(straight.method, "step", step)
    straight.fit()
    assert {side for fraction, side in sides if fraction < 0.5} == {4}
    assert {side for fraction, side in sides if fraction >= 0.5} == {8}

    assert same(straight.method, stopped_and_resumed(config, 3).method)
