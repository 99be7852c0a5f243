"""A Gaussian for each class, fitted to features with partly wrong labels, and the linear classifier it amounts to."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

NEVER = -1e4
"""Log prior of a class without examples."""


class Gaussians(NamedTuple):
    """Class means (K, D), one precision matrix for all of them (D, D), and how many examples each class has (K,)."""

    means: Tensor
    precision: Tensor
    counts: Tensor


def robust_gaussians(features: Tensor, y: Tensor, classes: int, *, share: float = 0.7, seed: int = 0) -> Gaussians:
    """Minimum covariance determinant in one step (Lee 2019), from features (N, D) and given labels (N,).

    A first guess comes from a random `share` of each class: its mean, and the covariances of all classes averaged by
    size. Then each class keeps the `share` of its examples that is nearest to its mean in that covariance (Mahalanobis
    distance), and mean and covariance are computed again from these. In float64 on the CPU.
    """
    z, labels = features.detach().cpu().double(), y.cpu()
    generator = torch.Generator().manual_seed(seed)
    members = [(labels == k).nonzero().squeeze(1) for k in range(classes)]
    guess = [of[torch.randperm(len(of), generator=generator)[: kept(len(of), share)]] for of in members]
    sizes = torch.tensor([len(of) for of in guess])
    first = Gaussians(*tied(z, guess, sizes), sizes)
    nearest = []
    for k, of in enumerate(members):
        away = z[of] - first.means[k]
        distance = ((away @ first.precision) * away).sum(1)
        nearest.append(of[distance.topk(kept(len(of), share), largest=False).indices])
    counts = torch.tensor([len(of) for of in members])
    return Gaussians(*tied(z, nearest, counts), counts)


def kept(n: int, share: float) -> int:
    """How many of n examples are kept: at least one, if there is one."""
    return min(n, max(1, int(n * share)))


def tied(z: Tensor, members: list[Tensor], weights: Tensor) -> tuple[Tensor, Tensor]:
    """The means of the members of each class (K, D), and the inverse of their weighted mean covariance (D, D)."""
    means, total = (
        torch.zeros(len(members), z.shape[1], dtype=z.dtype),
        torch.zeros(z.shape[1], z.shape[1], dtype=z.dtype),
    )
    for k, of in enumerate(members):
        if len(of):
            means[k] = z[of].mean(0)
            away = z[of] - means[k]
            total += weights[k] * (away.T @ away) / len(of)
    covariance = total / weights.sum().clamp(min=1)
    # the features are of single precision: what is smaller than its rounding is no variance
    return means, torch.linalg.pinv(covariance, hermitian=True, rtol=len(covariance) * torch.finfo(torch.float32).eps)


def linear_discriminant(gaussians: Gaussians) -> tuple[Tensor, Tensor]:
    """Weights (K, D) and biases (K,) of log P(k | z) up to what all classes share, all classes as frequent.

    W = mu P, b = -1/2 mu P mu^T + log 1/K. A class without examples is never chosen.
    """
    means, precision, counts = gaussians
    weight = means @ precision
    bias = -0.5 * (weight * means).sum(1) - math.log(len(means))
    return weight, torch.where(counts > 0, bias, torch.full_like(bias, NEVER))
