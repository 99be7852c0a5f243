"""Importance sampling: examples whose labels still have a gradient are seen more often."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BEGIN = 0.2
"""The share of the run after which examples are drawn: before, a network knows too little of them."""
FLOOR = 0.4
"""The chance that an example has at any rate, as a part of the mean one."""
FAINTEST = 1e-6
"""No gradient counts as less, so that chances are defined where all labels are learnt."""


class ImportanceSampling(nn.Module):
    """An epoch in several passes, each of which sees `share` of the examples, mostly those of large gradient.

    What counts is the gradient of the loss at the given label's logit when the example was seen last. It is small where
    the label is learnt already and where the network has come to doubt it: there a step costs as much as any other and
    changes next to nothing. In a pass each example has a chance of min(1, a + b gradient), where a is `FLOOR` times the
    share, and b makes the mean of all chances the share. `gradient` (N,) and `drawn` (passes, N) are buffers, so that a
    resumed epoch goes on with those who were drawn.
    """

    gradient: Tensor
    drawn: Tensor

    def __init__(self, n: int, share: float) -> None:
        super().__init__()
        self.share = share
        self.register_buffer("gradient", torch.ones(n))
        self.register_buffer("drawn", torch.zeros(round(1 / share), n, dtype=torch.bool))

    @property
    def begun(self) -> bool:
        """Whether examples are drawn by now."""
        return bool(self.drawn[0].any())

    @torch.no_grad()
    def remember(self, i: Tensor, gradient: Tensor) -> None:
        """Keep the gradients (B,) of the labels of examples i (B,)."""
        self.gradient[i] = gradient.to(self.gradient.dtype)

    def open(self, fraction: float, *, wanted: bool) -> None:
        """Before an epoch: draw by torch's generator who is seen in each pass, if `wanted` and not too early."""
        self.drawn.zero_()
        if wanted and self.share < 1 and fraction >= BEGIN:
            probabilities = chances(self.gradient.cpu(), self.share)  # not every device has float64
            for row in self.drawn:
                row[systematic(probabilities).to(row.device)] = True

    def passes(self) -> list[Tensor | None]:
        """For each pass of the epoch who is seen; None is everybody."""
        return [row.nonzero().squeeze(1) for row in self.drawn] if self.begun else [None]


def chances(gradient: Tensor, share: float) -> Tensor:
    """min(1, a + b gradient) (N,) in float64, with b such that the mean is `share`."""
    gradient, least = gradient.double().clamp(min=FAINTEST), FLOOR * share
    low, high = 0.0, 1.0 / FAINTEST
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (least + middle * gradient).clamp(max=1.0).mean() < share else (low, middle)
    return (least + high * gradient).clamp(max=1.0)


def systematic(probabilities: Tensor) -> Tensor:
    """Indices of examples, each drawn once at most and with its probability; as many as the probabilities add up to."""
    order = torch.randperm(len(probabilities)).to(probabilities.device)
    edges = probabilities[order].cumsum(0)
    first = float(torch.rand((), dtype=edges.dtype))
    marks = torch.arange(round(float(edges[-1])), dtype=edges.dtype, device=edges.device) + first
    drawn = torch.searchsorted(edges, marks.clamp(max=float(edges[-1])))
    return order[drawn[drawn.diff(prepend=drawn.new_tensor([-1])) > 0]]
