"""The noise matrix: read, named, estimated; and the likelihood of labels under it, against loops in float64."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import torch

from rte.errors import ConfigError, UserError
from rte.noise.matrix import NoiseModel
from rte.parts.transition import (
    CERTAIN,
    HIGHEST,
    PRIOR,
    SURE,
    anchor_matrix,
    believed,
    confident_matrix,
    confident_noise,
    confusion_matrix,
    known_matrix,
    log_likelihood,
    log_matrix,
)

K = 4
RNG = np.random.default_rng(3)
T = RNG.dirichlet(np.ones(K), size=K)
LOGITS = RNG.normal(scale=3, size=(9, K))
Y = RNG.integers(0, K, 9)


def anchors(probs: oracles.Array, percentile: float) -> oracles.Array:
    """For each class, sort the examples by its probability and take the one at the percentile's place."""
    rows = []
    for a in range(probs.shape[1]):
        order = sorted(range(len(probs)), key=lambda b: probs[b, a])
        rows.append(probs[order[math.ceil(percentile / 100 * (len(probs) - 1))]])
    return np.array([row / row.sum() for row in rows])


def test_the_likelihood_is_the_sum_over_true_classes() -> None:
    p = oracles.softmax(LOGITS)
    expected = [math.log(sum(p[b, a] * T[a, Y[b]] for a in range(K))) for b in range(len(Y))]
    found = log_likelihood(torch.tensor(LOGITS), torch.tensor(Y), log_matrix(torch.tensor(T)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_belief_is_the_posterior_of_the_given_class() -> None:
    p = oracles.softmax(LOGITS)
    expected = [p[b, y] * T[y, y] / sum(p[b, a] * T[a, y] for a in range(K)) for b, y in enumerate(Y)]
    found = believed(torch.tensor(LOGITS), torch.tensor(Y), log_matrix(torch.tensor(T)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_without_noise_the_likelihood_is_that_of_cross_entropy_and_all_is_believed() -> None:
    log_T = log_matrix(torch.eye(K, dtype=torch.float64))
    found = log_likelihood(torch.tensor(LOGITS), torch.tensor(Y), log_T)
    np.testing.assert_allclose(found.numpy(), oracles.log_likelihood(LOGITS, Y.tolist()), rtol=1e-10)
    assert believed(torch.tensor(LOGITS), torch.tensor(Y), log_T).tolist() == pytest.approx([1.0] * len(Y))


def test_for_symmetric_noise_it_is_the_forward_correction_of_the_losses() -> None:
    log_T = log_matrix(known_matrix(f"symmetric:{0.3}", K).double())
    found = log_likelihood(torch.tensor(LOGITS), torch.tensor(Y), log_T)
    np.testing.assert_allclose(-found.numpy(), oracles.forward_corrected(LOGITS, Y.tolist(), 0.3), rtol=1e-6)


def test_gradients_are_those_of_the_formula_for_logits_and_matrix() -> None:
    logits, b = torch.tensor(LOGITS, requires_grad=True), torch.tensor(np.log(T), requires_grad=True)
    log_likelihood(logits, torch.tensor(Y), b.log_softmax(1)).sum().backward()  # type: ignore[no-untyped-call]

    def total(z: oracles.Array, c: oracles.Array) -> float:
        p, rows = oracles.softmax(z), oracles.softmax(c)
        return float(sum(np.log(p[n] @ rows[:, y]) for n, y in enumerate(Y)))

    by_logits = oracles.slope(lambda flat: total(flat.reshape(LOGITS.shape), np.log(T)), LOGITS.ravel())
    by_matrix = oracles.slope(lambda flat: total(LOGITS, flat.reshape(T.shape)), np.log(T).ravel())
    assert logits.grad is not None
    assert b.grad is not None
    np.testing.assert_allclose(logits.grad.numpy().ravel(), by_logits, atol=1e-6)
    np.testing.assert_allclose(b.grad.numpy().ravel(), by_matrix, atol=1e-6)


def test_labels_that_the_matrix_calls_impossible_give_finite_values_and_gradients() -> None:
    logits = torch.tensor([[500.0, -500.0, 0.0, 0.0]], requires_grad=True)
    loss = -log_likelihood(logits, torch.tensor([1]), log_matrix(torch.eye(K)))
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert bool(loss.isfinite().all() and logits.grad.isfinite().all())
    half = log_likelihood(logits.detach().bfloat16(), torch.tensor([0]), log_matrix(torch.eye(K)))
    assert half.dtype == torch.float32


@pytest.mark.parametrize("percentile", [100.0, 97.0, 80.0, 10.0])
def test_anchors_are_the_examples_at_the_percentile(percentile: float) -> None:
    probs = oracles.softmax(RNG.normal(scale=2, size=(60, K)))
    found = anchor_matrix(torch.tensor(probs), percentile)
    np.testing.assert_allclose(found.numpy(), anchors(probs, percentile), rtol=1e-10)
    np.testing.assert_allclose(found.sum(1), 1.0)


def test_the_estimate_of_one_class_does_not_depend_on_that_of_another() -> None:
    """Zeroing outliers in place, as the published code does, changes what later rows are read from."""
    probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7]])
    torch.testing.assert_close(anchor_matrix(probs, 60.0), torch.tensor([[0.8, 0.2], [0.3, 0.7]]))
    torch.testing.assert_close(anchor_matrix(probs.flip(1), 60.0), torch.tensor([[0.7, 0.3], [0.2, 0.8]]))


def test_predictions_that_are_all_alike_are_each_others_anchor() -> None:
    np.testing.assert_allclose(anchor_matrix(torch.full((6, K), 0.25), 97.0).numpy(), 0.25)


def test_the_matrix_is_recovered_from_what_a_perfect_network_predicts() -> None:
    """A network that has learnt the noisy labels predicts T[a] where the true class is a.

    Of many examples that are predicted alike, none is an outlier: leaving out all of them would take another class's.
    """
    right = 0.5 * np.eye(K) + 0.5 * T
    found = anchor_matrix(torch.tensor(right)[torch.arange(40) % K], 97.0)
    np.testing.assert_allclose(found.numpy(), right)


@pytest.mark.parametrize("soft", [False, True])
def test_the_confusion_counts_given_labels_by_predicted_class(soft: bool) -> None:
    probs = oracles.softmax(RNG.normal(scale=2, size=(50, K)))
    y = RNG.integers(0, K, 50)
    counts = np.zeros((K, K))
    for row, label in zip(probs, y, strict=True):
        for a in range(K):
            counts[a, label] += row[a] if soft else float(a == int(row.argmax()))
    expected = counts / counts.sum(1, keepdims=True)
    found = confusion_matrix(torch.tensor(probs), torch.tensor(y), soft=soft)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_a_class_that_is_never_predicted_has_the_row_of_the_identity() -> None:
    probs = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    assert confusion_matrix(probs, torch.tensor([1, 1])).tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_a_matrix_is_known_by_name_or_from_a_file(tmp_path: Path) -> None:
    np.testing.assert_allclose(known_matrix("pair:0.4", K), NoiseModel.pair(K, 0.4).F, rtol=1e-6)
    np.testing.assert_allclose(known_matrix("none", K), np.eye(K))
    np.savetxt(tmp_path / "T.csv", T, delimiter=",")
    np.testing.assert_allclose(known_matrix(f"matrix:{tmp_path}/T.csv", K), T, rtol=1e-6)
    np.save(tmp_path / "C.npy", (1 - np.eye(K)) / (K - 1))
    found = known_matrix(f"matrix:{tmp_path}/C.npy:0.3", K)
    np.testing.assert_allclose(found, NoiseModel.symmetric(K, 0.3).F, rtol=1e-6)
    assert found.dtype == torch.float32


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("symmetrical:0.4", "there is no noise 'symmetrical'"),
        ("symmetric", "has no ratio"),
        ("labels:y.npy", "labels are no matrix"),
        ("patrini-cifar10:0.4", "a matrix of 10 classes, but the data have 4"),
        ("matrix:nowhere.csv", "there is no file nowhere.csv"),
    ],
)
def test_what_is_no_matrix_is_refused_in_a_sentence(text: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        known_matrix(text, K)
    with pytest.raises(ConfigError, match=r"method\.matrix = labels:y\.npy"):
        known_matrix("labels:y.npy", K)


# ---- from confident predictions


def drawn(n: int = 600) -> tuple[oracles.Array, np.ndarray[Any, Any]]:
    """Predictions (n, K) and labels (n,)."""
    rng = np.random.default_rng(8)
    return rng.dirichlet(np.full(K, 0.4), size=n), rng.integers(0, K, n)


def test_the_noise_is_how_often_labels_contradict_the_surest_predictions() -> None:
    probs, y = drawn()
    order = sorted(range(len(y)), key=lambda i: -probs[i].max())[: round(SURE * len(y))]
    counts = np.zeros((K, K))
    for i in order:
        counts[probs[i].argmax(), y[i]] += 1
    wrong, found = confident_noise(torch.tensor(probs), torch.tensor(y))
    np.testing.assert_array_equal(found.numpy(), counts)
    assert wrong == pytest.approx(min(1 - counts.trace() / counts.sum(), HIGHEST * (1 - 1 / K)))


def test_the_matrix_counts_the_surest_of_each_class_beside_what_is_assumed() -> None:
    probs, y = drawn()
    expected = np.array(oracles.symmetric_matrix(K, 0.3)) * PRIOR
    for a in range(K):
        own = sorted((i for i in range(len(y)) if probs[i].argmax() == a), key=lambda i: -probs[i, a])
        for i in own[: math.ceil(CERTAIN * len(own))]:
            expected[a, y[i]] += 1
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(confident_matrix(torch.tensor(probs), torch.tensor(y), 0.3), expected, rtol=1e-5)


def test_a_class_that_is_never_predicted_is_taken_to_be_as_wrong_as_all() -> None:
    probs = torch.tensor([[0.9, 0.1, 0.0]] * 5)
    T = confident_matrix(probs, torch.zeros(5, dtype=torch.int64), 0.2)
    np.testing.assert_allclose(T[2], [0.1, 0.1, 0.8], rtol=1e-5)
