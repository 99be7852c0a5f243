"""Local outlier factors against their definition, and the lowest part of each class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rte.parts.outliers import inlier_scores, lowest


def local_outlier_factors(z: Any, k: int) -> list[float]:
    """Breunig 2000, by loops: cosine distance, reachability, density, and the neighbours' density over one's own."""
    n = len(z)
    distance = [[1 - a @ b / math.sqrt((a @ a) * (b @ b)) for b in z] for a in z]
    near = [sorted((j for j in range(n) if j != i), key=lambda j, i=i: distance[i][j])[:k] for i in range(n)]
    far = [distance[i][near[i][-1]] for i in range(n)]
    density = [1 / (sum(max(distance[i][j], far[j]) for j in near[i]) / k) for i in range(n)]
    return [sum(density[j] for j in near[i]) / k / density[i] for i in range(n)]


@pytest.mark.parametrize("neighbours", [0.2, 0.4, 1.0])
def test_scores_are_the_definition_within_each_class(neighbours: float) -> None:
    random = np.random.default_rng(0)
    z, y = random.normal(size=(33, 5)) + 2, np.arange(33) % 3
    found = inlier_scores(torch.tensor(z), torch.tensor(y), 3, neighbours=neighbours)
    for k in range(3):
        own = z[y == k]
        nearest = min(len(own) - 1, max(1, round(neighbours * len(own))))
        expected = [1 / factor for factor in local_outlier_factors(own, nearest)]
        np.testing.assert_allclose(found[torch.tensor(y) == k].numpy(), expected, rtol=1e-3)


def test_an_example_unlike_its_class_has_a_low_score() -> None:
    random = np.random.default_rng(0)
    z = np.array([1.0, 0.0, 0.0]) + 0.1 * random.normal(size=(30, 3))
    z[7] = [0.0, 1.0, 0.0]
    scores = inlier_scores(torch.tensor(z), torch.zeros(30, dtype=torch.int64), 1, neighbours=0.4)
    assert int(scores.argmin()) == 7
    assert float(scores[7]) < 0.5 < 0.8 < float(scores.median())


def test_small_classes_and_features_that_do_not_differ_have_no_outliers() -> None:
    y = torch.tensor([0, 1, 1, 2, 2, 2, 2, 4])
    scores = inlier_scores(torch.zeros(8, 3), y, 5, neighbours=0.4)
    np.testing.assert_allclose(scores.numpy(), 1.0, rtol=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_the_lowest_of_each_class(share: float) -> None:
    random = np.random.default_rng(0)
    scores, y = torch.tensor(random.random(41)), torch.tensor(random.integers(0, 4, 41))
    y[0] = 4  # alone in its class
    found = lowest(scores, y, 5, share)
    for k in range(5):
        own = sorted(float(s) for s in scores[y == k])
        assert sorted(float(s) for s in scores[(y == k) & found]) == own[: int(share * len(own))]
    assert not found[0]
