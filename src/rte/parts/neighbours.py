"""Synthetic label noise: labels borrowed from the nearest examples of a batch."""

from __future__ import annotations

import torch
from torch import Tensor


def nearest(features: Tensor, count: int) -> Tensor:
    """The places of the `count` nearest others, by squared distance: (B, D) -> (B, n), n = min(count, B - 1)."""
    distance = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    distance.fill_diagonal_(torch.inf)  # else a copy might come before the example itself
    return distance.topk(min(count, len(features) - 1), largest=False).indices


def borrow(y: Tensor, near: Tensor, share: float) -> Tensor:
    """Labels (B,), of which a random `share` is replaced by that of one of their nearest, which are (B, n).

    Drawn on the CPU from torch's global generator, which the trainer seeds before each step. Without any neighbour the
    labels stay as they are.
    """
    chosen = torch.randperm(len(y))[: int(share * len(y))]
    if not near.shape[1]:
        return y
    column = torch.randint(near.shape[1], (len(chosen),))
    chosen, column = chosen.to(y.device), column.to(y.device)
    noisy = y.clone()
    noisy[chosen] = y[near[chosen, column]]
    return noisy
