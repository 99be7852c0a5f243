"""Neighbours in a batch against loops, and labels that are borrowed from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rte.parts.neighbours import borrow, nearest


@pytest.mark.parametrize(("size", "count"), [(9, 3), (5, 10), (2, 1), (1, 4)])
def test_the_nearest_others_are_those_of_the_loops(size: int, count: int) -> None:
    z = np.random.default_rng(0).normal(size=(size, 3))
    expected = []
    for i in range(size):
        others = sorted((float(((z[i] - z[j]) ** 2).sum()), j) for j in range(size) if j != i)
        expected.append([j for _, j in others[:count]])
    assert nearest(torch.from_numpy(z), count).tolist() == expected


def test_an_example_is_not_its_own_neighbour_even_among_copies() -> None:
    near = nearest(torch.zeros(6, 2), 5)
    assert all(i not in row for i, row in enumerate(near.tolist()))


@pytest.mark.parametrize(("share", "most"), [(0.0, 0), (0.5, 4), (1.0, 8)])
def test_borrowed_labels_are_those_of_neighbours_and_no_more_than_their_share(share: float, most: int) -> None:
    y = torch.arange(8)
    near = torch.tensor([[(i + 1) % 8, (i + 2) % 8] for i in range(8)])
    changed = set()
    for seed in range(30):
        torch.manual_seed(seed)
        noisy = borrow(y, near, share)
        different = (noisy != y).nonzero().squeeze(1).tolist()
        assert len(different) == most
        assert all(int(noisy[i]) in near[i].tolist() for i in different)
        changed.update((i, int(noisy[i])) for i in different)
    assert len(changed) == (16 if most else 0), "each neighbour of each example has its turn"
    assert torch.equal(y, torch.arange(8))


def test_alone_in_a_batch_an_example_keeps_its_label() -> None:
    y = torch.tensor([3])
    assert torch.equal(borrow(y, nearest(torch.ones(1, 4), 10), 1.0), y)
