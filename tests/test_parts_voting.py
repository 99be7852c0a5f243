"""Votes of nearest neighbours, and draws that make classes come equally often."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rte.parts import voting
from rte.parts.voting import balanced, vote


@pytest.mark.parametrize("k", [1, 5, 30])
def test_votes_are_those_of_the_nearest_by_cosine_over_the_frequency_of_a_class(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voting, "ROWS", 7)
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(30, 3)), rng.choice(4, 30, p=[0.6, 0.2, 0.2, 0.0])
    found = vote(torch.tensor(features), torch.tensor(labels), 4, k).numpy()
    for i, own in enumerate(features):
        cosine = [own @ other / np.linalg.norm(own) / np.linalg.norm(other) for other in features]
        near = np.argsort(cosine)[::-1][:k]
        assert i in near
        votes = np.array([sum(labels[j] == c for j in near) / max((labels == c).sum(), 1) for c in range(4)])
        np.testing.assert_allclose(found[i], votes / votes.sum(), atol=1e-6)


def test_features_of_zeros_have_votes_too() -> None:
    assert vote(torch.zeros(4, 2), torch.tensor([0, 1, 1, 0]), 2, 2).isfinite().all()


def test_classes_are_drawn_equally_often_and_the_best_of_a_small_one_once_more() -> None:
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2, 1, 3])
    kept = torch.tensor([1, 1, 1, 1, 1, 1, 1, 1, 0, 0]).bool()
    rank = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.9, 0.1, 1.0, 1.0])
    assert balanced(labels, kept, rank).tolist() == [1, 1, 1, 1, 1, 2, 3, 5, 0, 0]


def test_nothing_kept_is_nothing_drawn() -> None:
    assert balanced(torch.tensor([0, 1]), torch.zeros(2).bool(), torch.rand(2)).tolist() == [0, 0]
