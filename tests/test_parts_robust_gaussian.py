"""Robust class Gaussians: against a slow reference, with wrong labels, without a class, without full rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rte.parts.robust_gaussian import Gaussians, kept, linear_discriminant, robust_gaussians

K, D = 3, 4


def cloud(n: int = 60, seed: int = 0, wrong: float = 0.0) -> tuple[Any, list[int], list[int]]:
    """Features of K classes with one covariance, the true labels, and given ones of which a share is wrong."""
    random = np.random.default_rng(seed)
    shape = random.normal(size=(D, D))
    true = [i % K for i in range(n)]
    z = np.array([4.0 * np.eye(K, D)[k] for k in true]) + 0.4 * random.normal(size=(n, D)) @ shape
    given = [(k + 1) % K if random.random() < wrong else k for k in true]
    return z, true, given


def moments(z: Any, groups: list[list[int]], sizes: list[int]) -> tuple[list[Any], Any]:
    """Class means and the covariances averaged by size, element by element."""
    means = [sum(z[i] for i in group) / len(group) for group in groups]
    total = np.zeros((D, D))
    for mean, group, size in zip(means, groups, sizes, strict=True):
        own = sum(np.outer(z[i] - mean, z[i] - mean) for i in group) / len(group)
        total += size * own / sum(sizes)
    return means, total


def reference(z: Any, y: list[int], share: float, drawn: list[list[int]]) -> tuple[Any, Any]:
    """One step from the first guess `drawn`, example by example."""
    means, covariance = moments(z, drawn, [len(group) for group in drawn])
    precision = np.linalg.inv(covariance)
    nearest = []
    for k in range(K):
        of = [i for i in range(len(y)) if y[i] == k]
        distance = {i: float((z[i] - means[k]) @ precision @ (z[i] - means[k])) for i in of}
        nearest.append(sorted(of, key=lambda i: distance[i])[: int(share * len(of))])
    means, covariance = moments(z, nearest, [y.count(k) for k in range(K)])
    return np.array(means), np.linalg.inv(covariance)


@pytest.mark.parametrize("share", [0.7, 0.5, 1.0])
def test_the_fit_is_one_step_of_the_reference(share: float) -> None:
    z, _, y = cloud(wrong=0.3)
    generator = torch.Generator().manual_seed(5)
    drawn = []
    for k in range(K):
        of = [i for i in range(len(y)) if y[i] == k]
        order = torch.randperm(len(of), generator=generator)[: int(share * len(of))]
        drawn.append([of[int(place)] for place in order])
    means, precision = reference(z, y, share, drawn)
    found = robust_gaussians(torch.tensor(z), torch.tensor(y), K, share=share, seed=5)
    np.testing.assert_allclose(found.means.numpy(), means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.precision.numpy(), precision, rtol=1e-6)
    assert found.counts.tolist() == [y.count(k) for k in range(K)]


def test_wrong_labels_drop_out_of_the_fit() -> None:
    z, true, y = cloud(600, wrong=0.25)
    clean = np.array([z[[k == c for k in true]].mean(0) for c in range(K)])
    robust = robust_gaussians(torch.tensor(z), torch.tensor(y), K).means.numpy()
    plain = np.array([z[[k == c for k in y]].mean(0) for c in range(K)])
    assert np.abs(robust - clean).max() < 0.35 * np.abs(plain - clean).max()


def test_the_head_is_the_logarithm_of_the_posterior() -> None:
    z, _, y = cloud()
    fitted = robust_gaussians(torch.tensor(z), torch.tensor(y), K)
    weight, bias = (values.numpy() for values in linear_discriminant(fitted))
    logits = z @ weight.T + bias
    mean, precision = fitted.means.numpy(), fitted.precision.numpy()
    density = np.array([[-0.5 * (row - m) @ precision @ (row - m) for m in mean] for row in z])
    expected = np.exp(density) / np.exp(density).sum(1, keepdims=True)
    found = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(found / found.sum(1, keepdims=True), expected, atol=1e-9)


def test_a_class_without_examples_is_never_chosen() -> None:
    z, _, y = cloud()
    present = [i for i in range(len(y)) if y[i] != 1]
    fitted = robust_gaussians(torch.tensor(z[present]), torch.tensor([y[i] for i in present]), K)
    weight, bias = linear_discriminant(fitted)
    logits = torch.tensor(z) @ weight.T + bias
    assert logits.isfinite().all()
    assert (logits.argmax(1) != 1).all()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_examples_and_dead_features_are_finite(n: int) -> None:
    """Fewer examples than features, and a feature that is always 0, as ReLUs give it."""
    z, _, y = cloud()
    z[:, 2] = 0.0
    fitted = robust_gaussians(torch.tensor(z[:n]).float(), torch.tensor(y[:n]), K)
    weight, bias = linear_discriminant(fitted)
    assert weight.isfinite().all()
    assert bias.isfinite().all()
    assert (fitted.precision[2] == 0).all()


def test_the_rounding_of_a_feature_is_no_variance() -> None:
    z, _, y = cloud()
    z[:, 3] = 1.0 + 1e-9 * np.arange(len(z))
    weight, _ = linear_discriminant(robust_gaussians(torch.tensor(z), torch.tensor(y), K))
    assert float(weight[:, 3].abs().max()) < 10 * float(weight[:, :3].abs().max())


def test_the_same_seed_is_the_same_fit_whatever_was_drawn_before() -> None:
    z, _, y = cloud(wrong=0.3)
    torch.manual_seed(1)
    first = robust_gaussians(torch.tensor(z), torch.tensor(y), K, seed=3)
    torch.manual_seed(2)
    again, other = (robust_gaussians(torch.tensor(z), torch.tensor(y), K, seed=seed) for seed in (3, 4))
    assert isinstance(first, Gaussians)
    assert torch.equal(first.means, again.means)
    assert not torch.equal(first.means, other.means)


@pytest.mark.parametrize(
    ("n", "share", "expected"), [(0, 0.7, 0), (1, 0.7, 1), (10, 0.7, 7), (10, 1.0, 10), (3, 0.1, 1)]
)
def test_how_many_are_kept(n: int, share: float, expected: int) -> None:
    assert kept(n, share) == expected
