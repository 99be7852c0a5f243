"""Muon for convolutions: momentum whose update is made orthogonal (Jordan 2024).

torch's own Muon takes matrices only and computes in bfloat16, which is slow on processors. Here a convolution's weight
counts as the matrix (outputs, inputs * height * width), and is kept at a fixed norm, as in the fastest CIFAR-10
recipes; so it needs no weight decay. All other parameters (biases, norms, the head) take Nesterov SGD steps, whose
learning rate and momentum follow from those of the filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

ROUNDS = 3
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the polynomial a x + b x^3 + c x^5, whose iteration brings all singular values near one."""
REST_RATE, REST_MOMENTUM = 2.0, 0.85
"""Of the parameters that are no filters: how many times the learning rate, and which momentum."""


class Muon(torch.optim.Optimizer):
    """Orthogonal momentum for four-dimensional parameters, Nesterov SGD for the others."""

    def __init__(
        self, parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]], lr: float, momentum: float = 0.6
    ) -> None:
        groups: list[dict[str, Any]] = []
        for given in _groups(parameters):
            own, rest = given.get("momentum", momentum), given.get("momentum", REST_MOMENTUM)
            filters = [p for p in given["params"] if p.ndim == 4]
            others = [p for p in given["params"] if p.ndim != 4]
            groups.append({"params": filters, "filters": True, "rate": 1.0, "momentum": own})
            groups.append({"params": others, "filters": False, "rate": REST_RATE, "momentum": rest})
        super().__init__([group for group in groups if group["params"]], {"lr": lr, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One step from the gradients there are; a parameter without one stays as it is."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, grad = self.state[p], p.grad
                if not group["filters"]:
                    grad = grad.add(p, alpha=group["weight_decay"])
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                velocity = state["momentum"].mul_(group["momentum"]).add_(grad)
                update = grad.add(velocity, alpha=group["momentum"])
                if group["filters"]:
                    update = orthogonal(update.reshape(len(p), -1)).reshape(p.shape)
                    p.mul_(len(p) ** 0.5 / p.norm().clamp_min(1e-7))
                p.add_(update, alpha=-group["lr"] * group["rate"])


def orthogonal(matrix: Tensor, rounds: int = ROUNDS) -> Tensor:
    """A matrix with the same singular vectors and singular values near one (between about 0.5 and 1.2).

    Directions whose share of the norm is tiny need more rounds; these stay small.
    """
    a, b, c = COEFFICIENTS
    x = matrix / matrix.norm().clamp_min(1e-7)
    wide: Tensor = x if x.shape[0] <= x.shape[1] else x.T
    for _ in range(rounds):
        gram = wide @ wide.T
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    return wide if x.shape[0] <= x.shape[1] else wide.T


def _groups(parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parameters, or groups of them with settings of their own, as groups."""
    given = list(parameters)
    return [each for each in given if isinstance(each, dict)] or [{"params": given}]
