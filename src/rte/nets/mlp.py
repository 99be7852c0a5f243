"""A perceptron with residual layers on vectors."""

from __future__ import annotations

import re

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.nets.base import Net

NAMES = ("mlp", "mlp-<width>", "mlp-<width>-<layers>")
SUMMARY = "vectors: layers of that width with normalisation and GELU, each added to the one before; mlp is mlp-256-1"
VECTORS = True
WIDTH, LAYERS = 256, 1


class Layer(nn.Module):
    """h + GELU(W norm(h))."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.linear, self.drop = nn.LayerNorm(width), nn.Linear(width, width), nn.Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        new: Tensor = self.drop(F.gelu(self.linear(self.norm(h))))
        return h + new


class MLP(Net):
    """x (B, D) -> W x -> residual layers -> norm -> [features, x] -> logits (B, K).

    The head sees the vector itself beside the features: what a linear classifier can do is never lost.
    """

    def __init__(self, dim: int, classes: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.stem = nn.Linear(dim, width)
        self.layers = nn.Sequential(*(Layer(width, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width + dim, classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tensor) -> Tensor:
        h = F.gelu(self.norm(self.layers(self.stem(x))))
        return torch.cat([h, x], 1)


def build(name: str, *, channels: int, classes: int, size: tuple[int, ...], dropout: float) -> Net | None:
    match = re.fullmatch(r"mlp(?:-(\d+))?(?:-(\d+))?", name)
    if match is None:
        return None
    width, layers = (
        int(given) if given else usual for given, usual in zip(match.groups(), (WIDTH, LAYERS), strict=True)
    )
    return MLP(channels, classes, width, layers, dropout) if width and layers else None
