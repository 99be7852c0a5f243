"""Targets that name each class as often as the labels do."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MEMORY = 0.99
"""How much of the running mean a batch keeps."""
RAREST = 1e-3
"""No class counts as predicted less often than this share of how often it is wanted."""


class Balance(nn.Module):
    """p_k times how often class k is wanted over how often it has been predicted of late, normalised.

    A network that learns from its own or its teacher's predictions soon prefers the classes that it knows best: each of
    its mistakes makes the next one likelier. Distribution alignment (Berthelot et al. 2020) takes that back. `wanted`
    (K,) are frequencies of classes, those of the given labels for instance; `mean` is a buffer, so that a resumed run
    goes on with the same one, and begins with what is wanted, so that nothing is changed at first.
    """

    mean: Tensor
    wanted: Tensor

    def __init__(self, wanted: Tensor) -> None:
        super().__init__()
        share = wanted.float() / wanted.sum()
        self.register_buffer("wanted", share)
        self.register_buffer("mean", share.clone())

    @classmethod
    def of_labels(cls, y: Tensor, classes: int) -> Balance:
        """As frequent as in labels y (N,)."""
        return cls(torch.bincount(y, minlength=classes))

    @torch.no_grad()
    def forward(self, p: Tensor) -> Tensor:
        """Balanced probabilities for p (B, K), which are counted first; no gradient."""
        p = p.float()
        self.mean.lerp_(p.mean(0), 1.0 - MEMORY)
        p = p * (self.wanted / self.mean.maximum(RAREST * self.wanted).clamp_min(torch.finfo(p.dtype).tiny))
        return p / p.sum(1, keepdim=True).clamp_min(torch.finfo(p.dtype).tiny)
