"""Networks that start from trained weights: which parts of them learn, how fast, and grey images seen in colour."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rte import nets
from rte.nets.base import Net
from rte.nets.config import NetConfig, Trained
from rte.nets.weights import SOURCES, Normalisation, Weights


def make(cfg: NetConfig, name: str, *, channels: int, classes: int, size: tuple[int, int]) -> Net:
    """The network of that name, to be filled with weights by `fill`."""
    net = nets.build(name, channels=3, classes=classes, size=size, dropout=cfg.dropout)
    hold(net, cfg.train)
    made = net if channels == 3 else FromGrey(net, *SOURCES[name].normalisation)
    made.share = cfg.backbone_rate
    return made


def fill(net: Net, weights: Weights) -> None:
    """Put everything but the head into a network that `make` made."""
    weights.load_into(net.net if isinstance(net, FromGrey) else net)


def normalisation(net: str, channels: int) -> Normalisation:
    """The mean and standard deviation per channel that a network's weights were trained with."""
    mean, std = SOURCES[net].normalisation
    return (mean, std) if channels == 3 else ((sum(mean) / 3,), (sum(std) / 3,))


def hold(net: Net, trained: Trained) -> None:
    """Keep all but the head, or all before the last stage and the head, as they are."""
    if trained == "whole":
        return
    kept = ("head",) if trained == "frozen" else ("head", *net.last_stage)
    names = []
    for name, part in net.named_children():
        inner = [f"{name}.{k}" for k, _ in part.named_children()]
        names += inner if any(k in kept for k in inner) else [name]
    net.hold([name for name in names if name not in kept])


class FromGrey(Net):
    """A network for colour that is shown grey images (B, 1, H, W): the same in each colour, as it is used to them."""

    scale: Tensor
    shift: Tensor

    def __init__(self, net: Net, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.net = net
        spread, middle = (torch.tensor(values).view(1, 3, 1, 1) for values in (std, mean))
        self.register_buffer("scale", spread.mean() / spread, persistent=False)
        self.register_buffer("shift", (middle.mean() - middle) / spread, persistent=False)

    @property
    def head(self) -> nn.Linear:  # type: ignore[override]
        return self.net.head

    def features(self, x: Tensor) -> Tensor:
        return self.net.features(x * self.scale + self.shift)
