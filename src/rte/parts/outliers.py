"""How much an example looks like the others of its class: local outlier factors of features."""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST = 3
"""A class of fewer examples has no outliers."""


def inlier_scores(features: Tensor, y: Tensor, classes: int, *, neighbours: float) -> Tensor:
    """1 / LOF of each example among those of its label, from features (N, D) and labels (N,): (N,), about 1 or less.

    LOF (Breunig 2000) compares the density around an example with that around its nearest `neighbours`, a share of the
    class, by cosine distance: about 1 inside a cluster, larger outside.
    """
    from sklearn.neighbors import LocalOutlierFactor

    z, labels, scores = features.detach().float().cpu(), y.cpu(), torch.ones(len(y))
    for k in range(classes):
        of = (labels == k).nonzero().squeeze(1)
        if len(of) >= FEWEST:
            nearest = min(len(of) - 1, max(1, round(neighbours * len(of))))
            found = LocalOutlierFactor(n_neighbors=nearest, metric="cosine").fit(z[of].numpy())
            scores[of] = torch.from_numpy(-1.0 / found.negative_outlier_factor_).float()
    return scores.to(features.device)


def lowest(scores: Tensor, y: Tensor, classes: int, share: float) -> Tensor:
    """Whether an example is among the `share` of lowest scores of its label (N,); of single examples none is."""
    out = torch.zeros_like(y, dtype=torch.bool)
    for k in range(classes):
        of = (y == k).nonzero().squeeze(1)
        out[of[scores[of].topk(int(share * len(of)), largest=False).indices]] = True
    return out
