"""What every method promises holds on vectors as it does on images, for which test_methods_contract.py has it in full.

Runs are of 150 digits as vectors of 64 numbers, with a small perceptron; the last batch is too small.
"""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from conftest import QUICK_METHODS, TRUSTED
from sklearn.datasets import load_digits
from test_methods_contract import LABELS, METHODS, Snapshots, make, play
from test_train_trainer import same, trainer
from torch import Tensor, nn

from rte import nets, registry
from rte.compare.plan import plan
from rte.compare.runner import begin, train
from rte.config import RunConfig, merge, resolve
from rte.data.types import ArrayVectors, Dataset, Split
from rte.errors import Unsuitable
from rte.methods.base import Progress
from rte.train.trainer import Trainer

N, D, BATCH, EPOCHS = 150, 64, 40, 3
NEEDY = [name for name in METHODS if "hidden layers" in registry.method(name).needs]


@cache
def digits() -> Dataset:
    """With 40 % of the given labels wrong; what is injected by a run would be made from the true ones."""
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    given = np.where(rng.random(N) < 0.4, rng.integers(0, 10, N), y[:N])
    given[:TRUSTED] = y[:TRUSTED]
    train, test = (ArrayVectors(x[part].astype(np.float32)) for part in (slice(N), slice(N, N + 60)))
    names = tuple("0123456789")
    return Dataset("vectors", names, Split(train, given), Split(test, y[N : N + 60]), y_true=y[:N])


@cache
def trusted_file() -> str:
    path = Path(tempfile.mkdtemp()) / "trusted.txt"
    path.write_text("\n".join(map(str, range(TRUSTED))))
    return str(path)


def config(name: str, net: str = "mlp-16", **settings: Any) -> RunConfig:
    tree: dict[str, Any] = {
        "data": {"name": "vectors", "path": "digits.npz"},
        "method": {"name": name, **QUICK_METHODS.get(name, {})},
        "net": {"name": net},
        "train": {"epochs": EPOCHS, "batch": BATCH, "device": "cpu", "lr": 0.02, "evaluate_every": 1},
    }
    if "trusted examples" in registry.method(name).needs:
        tree["train"]["trusted"] = trusted_file()
    return resolve("vectors", merge(tree, settings))


def trained(name: str, dataset: Dataset | None = None, net: str = "mlp-16", **settings: Any) -> Trainer:
    made = trainer(config(name, net, **settings), dataset=dataset or digits())
    made.fit()
    assert all(bool(weight.isfinite().all()) for weight in made.method.parameters())
    return made


@cache
def reference(name: str) -> tuple[Trainer, list[bytes]]:
    """A whole run, and its state in the middle of each epoch."""
    watch = Snapshots()
    made = watch.trainer = trainer(config(name), dataset=digits(), observer=watch)
    made.fit()
    return made, watch.files


@pytest.mark.parametrize("name", METHODS)
def test_a_run_killed_in_mid_epoch_goes_on_as_if_it_had_not_been(name: str) -> None:
    straight, files = reference(name)
    second = trainer(config(name, train={"threads": 2}), dataset=digits())
    second.restore(torch.load(io.BytesIO(files[1]), weights_only=True))
    second.fit()
    assert (second.step, second.history) == (straight.step, straight.history)
    assert same(straight.method, second.method)


@pytest.mark.parametrize("name", METHODS)
def test_true_labels_are_sealed(name: str) -> None:
    rng, honest = np.random.default_rng(1), digits()
    assert honest.test is not None
    test = replace(honest.test, y=rng.integers(0, 10, len(honest.test)))
    y_true = np.r_[honest.train.y[:TRUSTED], rng.integers(0, 10, N - TRUSTED)]  # where they are trusted, they are given
    poisoned = trained(name, replace(honest, y_true=y_true, test=test))
    assert poisoned.history != reference(name)[0].history, "the poison did reach the examiner"
    assert same(poisoned.method, reference(name)[0].method)


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(NEEDY)))
def test_a_linear_layer_does_where_features_need_not_be_learnt(name: str) -> None:
    assert trained(name, net="linear", train={"steps": 5}).step == 5


# ---- steps


def perceptron() -> nn.Module:
    return nets.build("mlp-8", channels=18, classes=tiny.K, size=(), dropout=0.1)


def rows(i: list[int], view: int = 0) -> Tensor:
    """Some vector of each example and view, (B, 18)."""
    return tiny.images(i, view).flatten(1)


@pytest.mark.parametrize("name", METHODS)
def test_batches_may_be_single_examples_or_lack_classes(name: str) -> None:
    assert play(make(name, perceptron), pixels=rows, size=1, choose=lambda examples: examples[:3])
    assert play(make(name, perceptron), pixels=rows, choose=lambda examples: examples[LABELS[examples] == 2])


# ---- what does not suit


@pytest.mark.parametrize("name", NEEDY)
@pytest.mark.parametrize("net", ["linear", "cosine"])
def test_methods_that_act_on_learnt_features_are_refused_where_there_are_none(name: str, net: str) -> None:
    with pytest.raises(Unsuitable, match=f"the method {name} acts on how features are learnt.*net.name=mlp"):
        trainer(config(name, net), dataset=digits())


def test_a_comparison_goes_on_without_them(tmp_path: Path) -> None:
    x, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", x_train=x[:N], y_train=y[:N], x_test=x[N : 2 * N], y_test=y[N : 2 * N])
    path = {"data": {"path": str(tmp_path / "digits.npz")}}
    comparison, _ = plan(["d2l", "ce"], lambda name: config(name, "linear", **path))
    begin(comparison, tmp_path / "out", None)
    for _ in range(2):  # what was refused is not tried again
        d2l, ce = train(comparison, tmp_path / "out", data_dir=None, watch=lambda title: Quiet())
        assert d2l.failed is not None
        assert "hidden layers" in d2l.failed
        assert not ce.failed


class Quiet:
    def step(self, t: Progress, terms: dict[str, float]) -> None: ...

    def epoch(self, epoch: int, scores: Any) -> None: ...
