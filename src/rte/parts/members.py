"""Several networks that learn by turns and predict together."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from rte.parts.schedules import Moment
from rte.parts.selftune import Felt


class Members(nn.Module):
    """Networks of one kind, each with a start of its own: x (B, C, H, W) -> logits (B, K).

    In training mode the one whose `turn` it is answers, so that a step costs what one of a single network does, and
    each sees every so many-th batch. In evaluation mode the answer is the logarithm of their mean probabilities. Each
    of two networks has half the time to learn labels by heart.
    """

    def __init__(self, build: Callable[[], nn.Module], number: int) -> None:
        super().__init__()
        self.networks = nn.ModuleList(build() for _ in range(number))
        self.turn = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            logits: Tensor = self.networks[self.turn](x)
            return logits
        return torch.stack([net(x).log_softmax(1) for net in self.networks]).logsumexp(0) - math.log(len(self.networks))


def assembled(build: Callable[[], nn.Module], number: int) -> Callable[[], nn.Module]:
    """What makes so many networks where `build` makes one; `build` itself where one is enough."""
    return build if number == 1 else lambda: Members(build, number)


def take_turns(network: nn.Module, step: int) -> None:
    """Let the next of several networks learn; a single one is left alone. A function of the step, so runs resume."""
    if isinstance(network, Members):
        network.turn = step % len(network.networks)


def each(t: Moment, number: int) -> Moment:
    """t as one of so many networks sees it, which has its share of the epochs."""
    return t if number == 1 else Felt(t.epoch // number, math.ceil(t.epochs / number), t.fraction)
