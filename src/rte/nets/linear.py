"""A linear classifier on vectors: multinomial logistic regression, with whatever loss a method has."""

from __future__ import annotations

from torch import Tensor, nn

from rte.nets.base import Net

NAMES = ("linear",)
SUMMARY = "vectors: a linear layer; its features are the vectors themselves"
VECTORS = True


class Linear(Net):
    """x (B, D) -> logits (B, K), all zero at first."""

    hidden = False

    def __init__(self, dim: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(dim, classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.drop(x)
        return dropped


def build(name: str, *, channels: int, classes: int, size: tuple[int, ...], dropout: float) -> Net | None:
    return Linear(channels, classes, dropout) if name == "linear" else None
