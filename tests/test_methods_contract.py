"""What every method promises, each tried on every method: nothing here knows one by name but the lists of exceptions.

Runs go through the trainer as those of users do, with 201 digits and a small network; so the last batch is too small.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from conftest import TRUSTED, quick
from test_train_trainer import same, trainer
from torch import Tensor, nn

from rte import registry
from rte.config import RunConfig
from rte.data.types import Dataset
from rte.methods.base import Method, Predict, Progress, Task
from rte.run.build import load_dataset
from rte.train.trainer import Trainer
from rte.views.batch import Batch, ViewPlan

METHODS = registry.methods()
N, BATCH, EPOCHS = 201, 50, 3

DRAWS_BY_POSITION: dict[str, str] = {
    "auto": "its importance sampling goes through the examples in their order",
    "cleannet": "its fit draws examples and classes at random",
    "incv": "it halves the data at random",
    "d2l": "the dimensionality is measured on random examples",
    "rog": "a random part of each class begins its fit",
}
"""Methods whose random choices depend on the order of the examples, so that another order is another run; and why."""


@pytest.fixture(autouse=True)
def _small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rte.nets.build", lambda *a, **k: tiny.Small())


@cache
def digits() -> Dataset:
    whole = load_dataset(quick("ce"), None)
    assert whole.test is not None
    return replace(whole.only(np.arange(N)), test=whole.test.take(np.arange(60)))


def config(name: str, **settings: Any) -> RunConfig:
    return quick(name, train={"epochs": EPOCHS, "batch": BATCH, **settings.pop("train", {})}, **settings)


class Snapshots:
    """An observer that keeps what a checkpoint in the middle of each epoch would have had."""

    def __init__(self) -> None:
        self.trainer: Trainer | None = None
        self.files: list[bytes] = []

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        if self.trainer is not None and t.j == t.J // 2:
            file = io.BytesIO()
            torch.save(self.trainer.checkpoint(), file)
            self.files.append(file.getvalue())

    def epoch(self, epoch: int, scores: Any) -> None: ...


def trained(name: str, dataset: Dataset | None = None, **settings: Any) -> Trainer:
    made = trainer(config(name, **settings), dataset=dataset or digits())
    made.fit()
    return made


@cache
def reference(name: str) -> tuple[Trainer, list[bytes]]:
    """A whole run, and its state in the middle of each epoch."""
    watch = Snapshots()
    made = watch.trainer = trainer(config(name), dataset=digits(), observer=watch)
    made.fit()
    assert all(bool(value.isfinite().all()) for value in made.method.state_dict().values())
    return made, watch.files


# ---- runs


@pytest.mark.parametrize("name", METHODS)
def test_a_run_killed_in_mid_epoch_goes_on_as_if_it_had_not_been(name: str) -> None:
    straight, files = reference(name)
    assert len(files) == EPOCHS
    for file in files:
        second = trainer(config(name), dataset=digits())
        second.restore(torch.load(io.BytesIO(file), weights_only=True))
        second.fit()
        assert (second.step, second.history) == (straight.step, straight.history)
        assert same(straight.method, second.method)
        assert torch.equal(straight.margins.table, second.margins.table)


@pytest.mark.parametrize("name", METHODS)
def test_the_margins_of_all_examples_are_known_early_and_late(name: str) -> None:
    counts = reference(name)[0].margins.table[:, 1]
    assert bool((counts[:, :4].sum(1) > 0).float().mean() > 0.9)
    assert bool((counts[:, 4:].sum(1) > 0).float().mean() > 0.9)


@pytest.mark.parametrize("name", METHODS)
def test_threads_that_prepare_views_change_nothing(name: str) -> None:
    assert same(trained(name, train={"threads": 2}).method, reference(name)[0].method)


@pytest.mark.parametrize("name", METHODS)
def test_threads_that_compute_change_no_more_than_rounding(name: str) -> None:
    """Convolutions add up in another order, so that this cannot be exact."""
    states = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        states.append(trained(name, train={"steps": 2}).method.state_dict())
    for key, value in states[0].items():
        torch.testing.assert_close(value, states[1][key], rtol=1e-3, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("name", METHODS)
def test_another_seed_is_another_run(name: str) -> None:
    assert not same(trained(name, seed=1, train={"epochs": 1}).method, trained(name, train={"epochs": 1}).method)


@pytest.mark.parametrize("name", METHODS)
def test_true_labels_are_sealed(name: str, tmp_path: Path) -> None:
    rng, honest = np.random.default_rng(0), digits()
    assert honest.test is not None
    test, y_true = replace(honest.test, y=rng.integers(0, 10, len(honest.test))), rng.integers(0, 10, N)
    run: dict[str, Any] = {"noise": {"name": "none", "ratio": 0.0}}  # else the noise would be made of the poison
    if "trusted examples" in registry.method(name).needs:  # whose labels are given; a number is drawn by true labels
        y_true[:TRUSTED] = honest.train.y[:TRUSTED]
        (tmp_path / "trusted.txt").write_text("\n".join(str(row) for row in range(TRUSTED)))
        run["train"] = {"trusted": str(tmp_path / "trusted.txt")}
    poisoned = replace(honest, y_true=y_true, test=test)
    a, b = trained(name, honest, **run), trained(name, poisoned, **run)
    assert a.history != b.history, "the poison did reach the examiner"
    assert same(a.method, b.method)


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_may_be_computed_in_pieces(name: str) -> None:
    whole, pieces = reference(name)[0], trained(name, train={"accumulate": 2})
    assert all(bool(value.isfinite().all()) for value in pieces.method.state_dict().values())
    assert pieces.history[-1]["epoch"] == EPOCHS
    assert not same(whole.method, pieces.method), "batch norm sees half as many"


WORKER = f"""
import sys, torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
import rte.nets, tiny
from rte.train.distributed import World
from test_methods_contract import METHODS, config, digits, trainer
torch.set_num_threads(1)
rte.nets.build = lambda *a, **k: tiny.Small()
world, states = World.join(), {{}}
for name in METHODS:
    made = trainer(config(name, train={{"evaluate_every": 99}}), dataset=digits(), world=world)
    made.fit()
    states[name] = made.method.state_dict() | {{"margins": made.margins.table}}
torch.save(states, f"{{sys.argv[1]}}/{{world.rank}}.pt")
"""


@pytest.mark.slow
def test_two_processes_are_one_run(tmp_path: Path) -> None:
    """One pair of processes makes the runs of all methods, since to start costs more than to train."""
    (tmp_path / "worker.py").write_text(WORKER)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [*start, str(tmp_path / "worker.py"), str(tmp_path)], env=quiet, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    differ = {name: [key for key, value in one[name].items() if not torch.equal(value, two[name][key])] for name in one}
    assert {name: keys for name, keys in differ.items() if keys} == {}


# ---- steps

M = 37
"""Examples of a task without a trainer; no other size in any state is 37."""
LABELS = torch.tensor(np.random.default_rng(0).integers(0, tiny.K, M))


def make(name: str, build: Callable[[], nn.Module], place: Tensor | None = None) -> Method:
    """A method for M examples, of which number k stands at place[k]."""
    cls = registry.method(name)
    place = torch.arange(M) if place is None else place
    trusted = place[:8].sort().values if "trusted examples" in cls.needs else torch.zeros(0, dtype=torch.int64)
    torch.manual_seed(0)
    return cls(quick(name).method, Task(LABELS[place.argsort()], tiny.K, lambda k=0: build(), trusted))


def small() -> nn.Module:
    return tiny.Small(tiny.SHAPE, tiny.K)


def play(
    method: Method,
    place: Tensor | None = None,
    *,
    pixels: Callable[..., Tensor] = tiny.images,
    size: int = 10,
    choose: Callable[[Tensor], Tensor] = lambda examples: examples,
) -> int:
    """Four epochs as the trainer makes them, of the chosen examples in an order that is a matter of the examples alone.

    Returns how many steps there were.
    """
    place = torch.arange(M) if place is None else place
    example, step, update = place.argsort(), 0, tiny.sgd(method, lr=0.05)

    def sweep(predict: Predict, *, reported: bool = False) -> Tensor:
        method.eval()
        with torch.no_grad():
            out = predict(pixels(example.tolist(), 0))
        method.train()
        return out

    def batch(of: Tensor, plan: ViewPlan, second: Batch | None = None) -> Batch:
        views = torch.cat([pixels(of.tolist(), view) for view in range(plan.total)])
        return Batch(views, LABELS[of], place[of], plan, second)

    def order(index: Tensor | None, seed: int) -> Tensor:
        own = choose(torch.arange(M) if index is None else example[index].sort().values)
        return own[torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))]

    method.train()
    for epoch in range(4):
        torch.manual_seed(epoch)
        t = Progress(epoch, 4, step=step)
        method.epoch_start(t, sweep)
        for number, one in enumerate(method.passes(t)):
            parts = order(one.index, epoch).split(size)
            others = () if one.second is None else order(one.second, epoch).split(size)
            for j, part in enumerate(parts):
                t = Progress(epoch, 4, j, len(parts), step, number)
                torch.manual_seed(step)
                plan = method.views(t)
                second = batch(others[j % len(others)], plan.second or plan) if others and len(others[0]) else None
                if not len(part):
                    continue
                t = replace(t, lr=0.05 * method.clock(t).rate)
                terms = method.step(batch(part, plan, second), t, update)
                assert all(bool(torch.as_tensor(value).isfinite().all()) for value in terms.values()), terms
                method.after_step(t)
                step += 1
        method.epoch_end(t, sweep)
    assert all(bool(value.isfinite().all()) for value in method.state_dict().values())
    trust = method.trust(sweep)
    assert trust.shape == (M,)
    assert bool(((trust >= 0) & (trust <= 1)).all())
    return step


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(DRAWS_BY_POSITION)))
def test_what_is_known_of_an_example_follows_it_to_another_index(name: str) -> None:
    place = torch.randperm(M, generator=torch.Generator().manual_seed(1))
    one, two = make(name, small), make(name, small, place)
    assert play(one) == play(two, place)
    moved = two.state_dict()
    for key, value in one.state_dict().items():
        other = moved[key]
        for axis in (axis for axis, length in enumerate(value.shape) if length == M):
            other = other.index_select(axis, place)
        torch.testing.assert_close(value, other, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.parametrize("name", METHODS)
def test_batches_may_be_single_examples_or_lack_classes(name: str) -> None:
    assert play(make(name, small), size=1, choose=lambda examples: examples[:3])
    assert play(make(name, small), choose=lambda examples: examples[LABELS[examples] == 2])


@pytest.mark.parametrize("name", METHODS)
def test_all_labels_may_look_right_or_wrong_or_alike(name: str) -> None:
    """What splits the examples in two leaves one part empty; it still trains, on something, and stays finite."""
    for logits in (
        20.0 * torch.eye(tiny.K)[LABELS],
        20.0 * torch.eye(tiny.K)[(LABELS + 1) % tiny.K],
        torch.zeros(M, 4),
    ):
        assert play(make(name, lambda logits=logits: tiny.Table(logits)), pixels=tiny.numbers)
