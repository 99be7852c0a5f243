"""Prototypes of a class against loops, and the labels they give."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import Array

from rte.parts.prototypes import densest, prototype_labels


def cosine(a: Array, b: Array) -> float:
    return float(sum(a * b) / np.sqrt(sum(a * a) * sum(b * b)))


def slow_densest(features: Array, count: int, quantile: float, distinct: float) -> list[int]:
    n = len(features)
    s = [[round(cosine(features[i], features[j]), 9) for j in range(n)] for i in range(n)]
    cut = sorted(v for row in s for v in row)[int(quantile * n * n)]
    rho = [sum((v > cut) - (v < cut) for v in row) for row in s]
    ranked = sorted(range(n), key=lambda i: (-rho[i], -sum(s[i])))
    eta = {i: max(s[i][j] for j in ranked[:k]) if k else min(s[i]) for k, i in enumerate(ranked)}
    return [i for i in ranked if eta[i] < distinct][:count]


@pytest.mark.parametrize(("count", "quantile", "distinct"), [(8, 0.6, 0.95), (3, 0.4, 0.8), (50, 0.75, 0.99)])
def test_the_densest_are_those_of_the_loops(count: int, quantile: float, distinct: float) -> None:
    random = np.random.default_rng(3)
    features = np.abs(random.normal(size=(40, 5)) + 2 * random.normal(size=(4, 5))[random.integers(0, 4, 40)])
    found = densest(torch.from_numpy(features), count, quantile=quantile, distinct=distinct)
    assert found.tolist() == slow_densest(features, count, quantile, distinct)


def test_each_heap_has_a_prototype_and_outliers_come_last() -> None:
    random = np.random.default_rng(0)
    centres = np.eye(6)[:2] * 5
    heaps = np.concatenate([centres[k] + 0.4 * random.normal(size=(n, 6)) for k, n in ((0, 40), (1, 30))])
    stray = np.eye(6)[3:6] * 5
    features = torch.tensor(np.concatenate([heaps, stray]))
    chosen = densest(features, 2, distinct=0.7).tolist()
    assert sorted((i >= 40) + (i >= 70) for i in chosen) == [0, 1], "one of each heap, no stray one"


@pytest.mark.parametrize("features", [torch.ones(1, 3), torch.ones(7, 3), torch.zeros(4, 3)])
def test_copies_and_empty_features_have_one_prototype(features: torch.Tensor) -> None:
    assert len(densest(features, 8, distinct=0.0 if not features.any() else 0.95)) == 1


def test_prototypes_do_not_depend_on_the_order_of_the_examples() -> None:
    features = torch.randn(60, 4, generator=torch.Generator().manual_seed(1))
    order = torch.randperm(60, generator=torch.Generator().manual_seed(2))
    assert order[densest(features[order], 8)].tolist() == densest(features, 8).tolist()


def test_labels_are_the_class_of_the_highest_mean_cosine() -> None:
    random = np.random.default_rng(5)
    z, prototypes = random.normal(size=(20, 4)), random.normal(size=(7, 4))
    classes = [0, 0, 2, 2, 2, 3, 3]  # class 1 has none
    expected = []
    for x in z:
        mean = [
            np.mean([cosine(x, p) for p, c in zip(prototypes, classes, strict=True) if c == k]) if k != 1 else -2.0
            for k in range(4)
        ]
        expected.append(int(np.argmax(mean)))
    found = prototype_labels(torch.from_numpy(z), torch.from_numpy(prototypes), torch.tensor(classes))
    assert found.tolist() == expected


def test_all_cosines_below_zero_still_leave_out_a_class_without_prototypes() -> None:
    found = prototype_labels(-torch.ones(1, 3), torch.ones(2, 3), torch.tensor([2, 2]))
    assert found.tolist() == [2]
