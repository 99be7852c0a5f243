"""Mixup (Zhang 2018): train on convex combinations of pairs of examples.

Drawing the combination and applying it are two functions, so that one draw can be used for several tensors or replayed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rte.errors import ConfigError


class Mixed(NamedTuple):
    """x (B, ...) and targets (B, K) mixed as weight * own + (1 - weight) * those of example order[b]."""

    x: Tensor
    targets: Tensor
    weight: float
    order: Tensor


def mixup(x: Tensor, targets: Tensor, *, alpha: float, dominant: bool = False) -> Mixed:
    """Mix each example with another of the batch, images and targets alike; parameters as in `draw`."""
    weight, order = draw(len(x), alpha, dominant=dominant)
    order = order.to(x.device)
    return Mixed(mix(x, weight, order), mix(targets, weight, order), weight, order)


def draw(n: int, alpha: float, *, dominant: bool = False) -> tuple[float, Tensor]:
    """One weight ~ Beta(alpha, alpha) for the batch and a random order (n,) of partners.

    `dominant` takes max(l, 1 - l), so that each example keeps the larger share of its own mixture; alpha = 0 means
    no mixing (weight 1). Drawn on the CPU from torch's global generator, which the trainer seeds before each step:
    the same on every device. In a loop of your own, call torch.manual_seed first to repeat a draw.
    """
    if not alpha >= 0.0:
        raise ConfigError(f"alpha of mixup is {alpha}; give 0 (no mixing) or a positive number.")
    weight = float(torch.distributions.Beta(alpha, alpha).sample()) if alpha else 1.0
    return max(weight, 1.0 - weight) if dominant else weight, torch.randperm(n)


def mix(values: Tensor, weight: float | Tensor, order: Tensor) -> Tensor:
    """weight * values[b] + (1 - weight) * values[order[b]], floating point (B, ...); label numbers must be one-hot.

    `weight` is one number, or one per example (B,).
    """
    if not values.is_floating_point():
        raise ConfigError(f"mixup got values of {values.dtype}; give floating-point ones (labels as one-hot rows).")
    if isinstance(weight, Tensor):
        weight = weight.to(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
    return torch.lerp(values[order], values, weight)
