"""CleanNet: what a pair of image and class costs, what stands for a class, and whether wrong labels are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from rte.parts.verification import CleanNet, _scaled, agreement, class_references, pair_losses


@pytest.mark.parametrize("margin", [0.1, 0.4])
def test_pair_losses_are_the_formula(margin: float) -> None:
    cosine, right = np.linspace(-1, 1, 21), np.arange(21) % 2
    expected = [r * (1 - c) + 5 * (1 - r) * max(0.0, c - margin) for c, r in zip(cosine, right, strict=True)]
    found = pair_losses(torch.tensor(cosine), torch.tensor(right), margin)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_features_are_scaled_by_a_logarithm_that_keeps_the_sign_to_the_same_size() -> None:
    scaled = _scaled(torch.tensor([[0.0, np.e - 1], [1 - np.e, 0.0]]))
    np.testing.assert_allclose(scaled.numpy(), [[0.0, 10.0], [-10.0, 0.0]], atol=1e-5)
    assert not _scaled(torch.zeros(3, 2)).any()


def test_a_class_is_an_attention_weighted_mean_of_its_centroids() -> None:
    torch.manual_seed(0)
    net = CleanNet(6).eval().requires_grad_(False)
    references, present = torch.randn(3, 4, 6), torch.ones(3, 4, dtype=torch.bool)
    present[1, 2:] = False
    found = net.classes(references, present)
    for c in range(3):
        h = [net.one(references[c, r]) for r in range(4) if present[c, r]]
        score = np.exp([float(net.attend(one)) for one in h])
        mean = sum((s * one for s, one in zip(score / score.sum(), h, strict=True)), torch.zeros(256))
        torch.testing.assert_close(found[c], net.whole(mean), rtol=1e-4, atol=1e-5)


def test_references_are_the_heaps_of_a_class() -> None:
    v = torch.tensor([[0.0, 0.0], [0.0, 0.2], [5.0, 5.0], [5.0, 5.2], [9.0, 9.0], [9.0, 9.0]])
    centroids, present = class_references(v, torch.tensor([0, 0, 0, 0, 2, 2]), 3, 2)
    assert present.tolist() == [[True, True], [False, False], [True, False]], "copies are one, no examples are none"
    np.testing.assert_allclose(sorted(centroids[0].tolist()), [[0.0, 0.1], [5.0, 5.1]], atol=1e-6)
    assert centroids[2, 0].tolist() == pytest.approx([9.0, 9.0])


def noisy_heaps(wrong: int = 60) -> tuple[Tensor, Tensor, Tensor]:
    """Features of three classes, labels of which the last `wrong` are wrong, and a few rows known to be right."""
    random = torch.Generator().manual_seed(3)
    true = torch.arange(180) % 3
    features = 2 * torch.nn.functional.one_hot(true, 3).float().repeat(1, 3) + 0.3 * torch.randn(
        180, 9, generator=random
    )
    y = true.clone()
    y[-wrong:] = (true[-wrong:] + 1 + torch.arange(wrong) % 2) % 3
    return features, y, torch.arange(12)


def test_wrong_labels_disagree_with_their_images() -> None:
    features, y, trusted = noisy_heaps()
    torch.manual_seed(0)
    cosine = agreement(features, y, trusted, 3, references=4, steps=200)
    assert cosine.shape == (180,)
    assert float(cosine[:120].min()) > float(cosine[120:].max())
    assert float(cosine.abs().max()) <= 1 + 1e-6


def test_the_seed_decides_and_nothing_else() -> None:
    features, y, trusted = noisy_heaps()
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(agreement(features, y, trusted, 3, references=2, steps=5))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_a_class_without_examples_and_a_single_trusted_one_are_no_trouble() -> None:
    features, y, _ = noisy_heaps()
    assert bool(agreement(features, y, torch.tensor([0]), 5, steps=3).isfinite().all())
