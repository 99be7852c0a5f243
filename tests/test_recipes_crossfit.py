"""Cross-fitting: networks side by side, who learns what, and what is made of predictions of examples not learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from conftest import quick
from sklearn.datasets import load_digits
from test_train_trainer import StopAfter, trainer
from torch import Tensor, nn

from rte import nets
from rte.config import RunConfig, merge, resolve
from rte.data.types import Dataset
from rte.data.vectors import from_vectors
from rte.noise.matrix import NoiseModel
from rte.parts.ema import EMA
from rte.parts.transition import log_matrix, symmetric_matrix
from rte.recipes.crossfit import CrossFit, SideBySide, Stack, judge
from rte.recipes.policy import LOOKS
from rte.train.trainer import Interrupted

PARTS, DECAYS = 3, (1.0, 50.0)
D, K, N = 6, 4, 30
RNG = np.random.default_rng(0)
X = torch.tensor(RNG.normal(size=(N, D)), dtype=torch.float32)
Y = torch.tensor(RNG.integers(0, K, N))


def build(name: str = "linear") -> Any:
    def make(k: int = 0) -> nn.Module:
        torch.manual_seed(k)
        net = nets.build(name, channels=D, classes=K, size=(), dropout=0.0)
        with torch.no_grad():
            for p in net.parameters():
                p.add_(0.3 * torch.randn_like(p))
        return net

    return make


def crossfit() -> CrossFit:
    torch.manual_seed(0)
    return CrossFit(N, K, PARTS)


def sweep(predict: Any, *, reported: bool = False) -> Tensor:
    """By batches of seven, as a loader brings them."""
    with torch.no_grad():
        return torch.cat([predict(x) for x in X.split(7)])


@pytest.mark.parametrize("name", ["linear", "cosine", "mlp-8-2"])
def test_a_stack_computes_what_its_networks_do_one_by_one(name: str) -> None:
    alone = [build(name)(k) for k in range(3)]
    stack = Stack(alone)
    expected = torch.stack([net(X) for net in alone])
    torch.testing.assert_close(stack(X), expected)
    weights = torch.tensor(RNG.normal(size=expected.shape), dtype=torch.float32)
    (weights * expected).sum().backward()
    (weights * stack(X)).sum().backward()
    for own in stack.parameters():
        assert own.grad is not None
    for key, own in stack.named_parameters():
        name_alone = key.replace("-", ".")
        grads = torch.stack([dict(net.named_parameters())[name_alone].grad for net in alone])  # type: ignore[misc]
        torch.testing.assert_close(own.grad, grads, rtol=1e-4, atol=1e-5)


def test_networks_side_by_side_start_differently_and_one_strength_may_be_left() -> None:
    student = SideBySide(build(), PARTS, DECAYS)
    logits = student(X)
    assert logits.shape == (len(DECAYS), PARTS, N, K)
    assert len({tuple(f.flatten().tolist()) for f in logits.flatten(0, 1).detach()}) == len(DECAYS) * PARTS
    student.kept.fill_(1)
    torch.testing.assert_close(student(X), logits[1:])
    found = student.decayed()
    assert [decay for _, decay in found] == [1.0, 0.0, 50.0, 0.0]
    assert [[p.ndim for p in own] for own, _ in found] == [[3], [2], [3], [2]], "biases have no decay"


@pytest.mark.parametrize("taught", [False, True])
def test_the_objective_is_that_of_each_network_on_what_it_learns(taught: bool) -> None:
    fit, i = crossfit(), torch.arange(4, 20)
    T = np.random.default_rng(2).dirichlet(np.ones(K), size=K)
    targets = np.random.default_rng(3).dirichlet(np.ones(K), size=N)
    fit.log_T.copy_(log_matrix(torch.tensor(T, dtype=torch.float32)))
    if taught:
        fit.targets = torch.tensor(targets, dtype=torch.float32)
    logits = torch.tensor(RNG.normal(size=(2, PARTS, len(i), K)), dtype=torch.float32)
    expected = 0.0
    for r in range(2):
        for m in range(PARTS):
            p = oracles.softmax(logits[r, m].double().numpy())
            learns = [k for k in range(len(i)) if int(fit.left_out[i[k]]) != m]
            own = [
                -sum(targets[int(i[k]), a] * np.log(p[k, a]) for a in range(K))
                if taught
                else -np.log(sum(p[k, a] * T[a, int(Y[i[k]])] for a in range(K)))
                for k in learns
            ]
            expected += float(np.mean(own))
    assert float(fit.loss(logits, i, Y[i])) == pytest.approx(expected, rel=1e-5)


def test_nobody_learns_what_it_leaves_out() -> None:
    fit, student = crossfit(), SideBySide(build(), PARTS, DECAYS)
    left_out = (fit.left_out == 1).nonzero().squeeze(1)
    assert 0 < len(left_out) < N
    fit.loss(student(X[left_out]), left_out, Y[left_out]).backward()  # type: ignore[no-untyped-call]
    for stack in student.stacks:
        for p in stack.parameters():
            assert p.grad is not None
            assert not p.grad[1].any()
            assert p.grad[0].any()


def test_what_is_asked_is_who_has_not_seen_the_example_whatever_the_batches() -> None:
    fit, teacher = crossfit(), EMA(SideBySide(build(), PARTS, DECAYS))
    logits = teacher(X)
    fit.calibrate(teacher, sweep, Y)
    best = int(fit.best)
    unseen = torch.stack([logits[best, int(fit.left_out[i]), i] for i in range(N)])
    p = oracles.softmax(unseen.double().numpy() / float(fit.temperature))
    T = np.exp(fit.log_T.double().numpy())
    expected = [p[i, y] * T[y, y] / sum(p[i, a] * T[a, y] for a in range(K)) for i, y in enumerate(Y.tolist())]
    np.testing.assert_allclose(fit.trust(teacher, sweep, Y), expected, rtol=1e-4)
    mean = torch.stack([(f / fit.temperature).softmax(1) for f in logits[best]]).mean(0)
    torch.testing.assert_close(fit.mean(logits).softmax(1), mean)


def test_looks_are_taken_in_time_and_the_last_one_leaves_targets() -> None:
    fit, student = crossfit(), SideBySide(build(), PARTS, DECAYS)
    teacher = EMA(student)
    assert fit.look(LOOKS[0] - 1e-6, student, teacher, sweep, Y) == {}
    assert "noise" in fit.look(LOOKS[0], student, teacher, sweep, Y)
    assert fit.look(LOOKS[0] + 1e-6, student, teacher, sweep, Y) == {}, "not again"
    assert not fit.settled
    fit.look(LOOKS[-1], student, teacher, sweep, Y)
    assert fit.settled
    torch.testing.assert_close(fit.targets.sum(1), torch.ones(N))
    assert int(student.kept) == int(teacher.module.kept) == int(fit.best)  # type: ignore[operator, arg-type]
    again = CrossFit(N, K, PARTS)
    again.load_state_dict(fit.state_dict())
    assert torch.equal(again.targets, fit.targets)


def test_the_noise_is_found_and_the_better_predictions_are_preferred() -> None:
    rng = np.random.default_rng(5)
    n, wrong = 4000, 0.4
    true = rng.integers(0, K, n)
    y = torch.tensor(np.where(rng.random(n) < wrong, (true + rng.integers(1, K, n)) % K, true))
    sharp = torch.tensor(rng.normal(size=(n, K)) + 5.0 * np.eye(K)[true])
    blurred = torch.tensor(rng.normal(scale=2.0, size=(n, K)) + 3.0 * np.eye(K)[true])
    found = judge(sharp, y)
    torch.testing.assert_close(found.log_T.exp(), symmetric_matrix(wrong, K), rtol=0.0, atol=0.05, check_dtype=False)
    assert found.cost < judge(blurred, y).cost
    assert tiny.number(found.temperature) > 0.0


# ---- in a run


def run(**settings: Any) -> RunConfig:
    """Ten classes of vectors, a fifth of the labels wrong."""
    data = {"name": "vectors", "path": "given"}
    tree = {"data": data, "noise": {"name": "none"}, "train": {"epochs": 4, "batch": 64, "evaluate_every": 2}}
    return resolve("vectors", merge(tree, settings))


def digits(n: int = 320) -> Dataset:
    x, y = load_digits(return_X_y=True)
    wrong = NoiseModel.symmetric(10, 0.2).sample(y[:n], seed=0)
    return from_vectors(x[:n], wrong, name="digits", y_true=y[:n])


@pytest.mark.parametrize("stop", [6, 13])
def test_a_run_of_networks_side_by_side_resumes_bit_for_bit(stop: int) -> None:
    config, data = run(net={"name": "linear"}), digits()
    straight = trainer(config, dataset=data)
    straight.fit()
    assert straight.method.crossfit.settled  # type: ignore[union-attr]
    saved: dict[str, Any] = {}
    with pytest.raises(Interrupted):
        trainer(config, saved, data, observer=StopAfter(stop)).fit()
    resumed = trainer(config, dataset=data)
    resumed.restore(saved["checkpoint"])
    resumed.fit()
    torch.testing.assert_close(
        straight.method.state_dict(), resumed.method.state_dict(), rtol=0.0, atol=0.0, equal_nan=True
    )
    assert resumed.history == straight.history


def test_networks_with_batch_norm_go_side_by_side_too() -> None:
    made = trainer(quick("auto", method={"folds": 3}))
    made.fit()
    stack = made.method.student.stacks[int(made.method.crossfit.best)]  # type: ignore[union-attr, index, arg-type, operator]
    means = [value for name, value in stack.named_buffers() if name.endswith("running_mean")]
    assert means
    assert all(mean.any() for mean in means)
