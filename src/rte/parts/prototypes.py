"""Several prototypes of each class, taken from features, and what labels they give."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def densest(features: Tensor, count: int, *, quantile: float = 0.6, distinct: float = 0.95) -> Tensor:
    """Which of some features (m, D) of one class stand for it: at most `count` places, the densest first (Han 2019).

    S is the matrix of cosines and S_c its `quantile`; rho_i = sum_j sign(S_ij - S_c) is the density around i, where
    equal ones are ordered by their mean cosine; eta_i = max of S_ij over all denser j is the likeness to one of them,
    and min_j S_ij for the densest. Taken are those with eta below `distinct`, which are no copies of a denser one.
    """
    z = F.normalize(features.double(), dim=1)
    cosines = (z @ z.T).round(decimals=9)  # so that a pair is alike in both directions
    cut = cosines.flatten().sort().values[min(int(quantile * cosines.numel()), cosines.numel() - 1)]
    rho = (cosines - cut).sign().sum(1)
    order = cosines.mean(1).argsort(descending=True, stable=True)
    order = order[rho[order].argsort(descending=True, stable=True)]
    ranked = cosines[order][:, order]
    eta = ranked.masked_fill(torch.ones_like(ranked, dtype=torch.bool).triu(), -torch.inf).amax(1)
    eta[0] = ranked[0].min()
    chosen = order[eta < distinct][:count]
    return chosen if len(chosen) else order[:1]


def prototype_labels(features: Tensor, prototypes: Tensor, classes: Tensor) -> Tensor:
    """The class whose prototypes are most alike on average: features (N, D), prototypes (P, D) of classes (P,) -> (N,).

    Likeness is the cosine. A class without prototypes is never chosen.
    """
    owner = F.one_hot(classes).to(features.dtype)
    cosines = F.normalize(features, dim=1) @ F.normalize(prototypes, dim=1).T
    counts = owner.sum(0)
    mean = (cosines @ owner) / counts.clamp(min=1)
    return torch.where(counts > 0, mean, -torch.inf).argmax(1)
