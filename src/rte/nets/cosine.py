"""A cosine classifier on vectors: logits are scale * cos(x, w_k), so the length of a vector says nothing."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from rte.nets.base import Net

NAMES = ("cosine",)
SUMMARY = "vectors: scaled cosines between the vector and one direction per class"
VECTORS = True
SCALE = 16.0
"""A cosine of 1 against 0 for all others is a probability of 0.999 for a hundred classes."""


class CosineHead(nn.Linear):
    """Directions of the classes, each of length `SCALE` whatever its weights are."""

    def forward(self, x: Tensor) -> Tensor:
        return SCALE * F.linear(x, F.normalize(self.weight, dim=1))


class Cosine(Net):
    """x (B, D) -> logits (B, K) in -16..16; features are the vectors at length 1."""

    hidden = False

    def __init__(self, dim: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.head = CosineHead(dim, classes, bias=False)

    def features(self, x: Tensor) -> Tensor:
        return F.normalize(self.drop(x), dim=1)


def build(name: str, *, channels: int, classes: int, size: tuple[int, ...], dropout: float) -> Net | None:
    return Cosine(channels, classes, dropout) if name == "cosine" else None
