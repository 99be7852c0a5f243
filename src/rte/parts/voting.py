"""What the nearest neighbours of an example say of its label."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = 1000
"""Examples compared with all others at once."""


def vote(features: Tensor, labels: Tensor, classes: int, k: int) -> Tensor:
    """How many of the k nearest by cosine, itself included, have each label, over how often it occurs: (N, K).

    features (N, D), labels (N,); a label that does not occur has no votes. Rows sum to 1.
    """
    z, counts = F.normalize(features.float(), dim=1), labels.bincount(minlength=classes)
    one_hot = F.one_hot(labels, classes).float() / counts.clamp(min=1)
    votes = torch.cat([one_hot[(part @ z.T).topk(k, dim=1).indices].sum(1) for part in torch.split(z, ROWS)])
    return votes / votes.sum(1, keepdim=True)


def balanced(labels: Tensor, kept: Tensor, rank: Tensor) -> Tensor:
    """How often to draw each example so that all classes among the kept ones come equally often: (N,) whole numbers.

    The largest class comes once. Where a class does not fit evenly, those of highest `rank` (N,) come once more.
    """
    draws = torch.zeros_like(labels)
    members = [((labels == k) & kept).nonzero().squeeze(1) for k in set(labels[kept].tolist())]
    most = max((len(of) for of in members), default=0)
    for of in members:
        draws[of] = most // len(of)
        draws[of[rank[of].argsort(descending=True)[: most % len(of)]]] += 1
    return draws
