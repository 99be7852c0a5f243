"""How much each example of a batch counts: by its gradient's agreement with another one, or by chance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def positive_shares(values: Tensor) -> Tensor:
    """max(v, 0), divided by their sum: (B,) -> (B,); all 0 where no value is positive."""
    positive = values.clamp(min=0.0)
    total = positive.sum()
    return positive / torch.where(total > 0, total, torch.ones_like(total))


def alignment(losses: Tensor, parameters: Sequence[Tensor], direction: Sequence[Tensor | None]) -> Tensor:
    """<grad losses_i, direction> for each of losses (B,), without gradient; the graph of `losses` is kept.

    `direction` is a tensor like each parameter, or None for zero. It is the derivative of sum_p <g_p, direction_p> with
    respect to v, where g = grad sum_i v_i losses_i: two backward passes for the whole batch instead of one for each
    example.
    """
    with torch.autocast(losses.device.type, enabled=False):
        v = torch.ones_like(losses, requires_grad=True)
        grads = torch.autograd.grad((v * losses).sum(), parameters, create_graph=True, allow_unused=True)
        pairs = [(g, d) for g, d in zip(grads, direction, strict=True) if g is not None and d is not None]
        if not pairs:
            return torch.zeros_like(losses)
        (found,) = torch.autograd.grad([g for g, _ in pairs], v, [d for _, d in pairs], retain_graph=True)
    return found
