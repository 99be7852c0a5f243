"""Deep bilevel learning (Jenni & Favaro 2018): parts of a batch count as far as a validation part agrees with them.

The batch is dealt into G groups with nearly the same labels. Group 0 is for validation. With g_i the gradient of the
mean cross-entropy of group i, in all parameters as one vector,

    w_i   = <g_0, g_i> / (|g_i|^2 + mu)                      i = 1 .. G - 1
    the step has the gradient  sum_i w_i g_i / sum_i |w_i|

w_i is how much of the validation gradient is explained by g_i alone (a ridge regression). What groups have in common
are the classes; wrong labels move each of them elsewhere. Weights may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy
from rte.settings import Settings, setting
from rte.views.batch import Batch

SMALLEST = 2
"""Examples of a group: batch norm needs more than one."""


class BiLevel(Method):
    """Cross-entropy with gradients weighted by their agreement with a validation group of the same batch."""

    summary = "deep bilevel learning: parts of a batch count as far as their gradients agree with a validation part"
    paper = "Jenni & Favaro, 2018"

    class Config(Settings):
        groups: int = setting(8, "G: parts of a batch, of which the first is for validation", ge=2)
        mu: float = setting(0.01, "holds back the weights of small gradients", gt=0.0, search=(1e-4, 1.0))

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        number = min(self.cfg.groups, len(batch) // SMALLEST)
        if number < 2:  # nothing to compare
            return {"loss": cross_entropy(self.net(batch.x), batch.y).mean()}
        parameters = [p for p in self.net.parameters() if p.requires_grad]
        losses, weights = [], []
        direction = [torch.zeros_like(p) for p in parameters]
        for k, group in enumerate(dealt(batch.y, number)):
            losses.append(cross_entropy(self.net(batch.x[group]), batch.y[group]).mean())
            with torch.autocast(batch.x.device.type, enabled=False):  # as the trainer's own backward passes
                gradient = torch.autograd.grad(losses[-1], parameters, materialize_grads=True)
            if k == 0:
                validation = gradient
                continue
            weights.append(dot(validation, gradient) / (dot(gradient, gradient) + self.cfg.mu))
            torch._foreach_add_(direction, torch._foreach_mul(gradient, weights[-1]))
        w, value = torch.stack(weights), torch.stack(losses).detach().mean()
        torch._foreach_div_(direction, w.abs().sum().clamp(min=torch.finfo(w.dtype).tiny))
        return {
            "loss": steered(value, parameters, direction),
            "agreement": w.mean(),
            "negative": (w < 0).to(w.dtype).mean(),
        }

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits


def dealt(y: Tensor, groups: int) -> list[Tensor]:
    """The places of (B,) labels in so many groups, like cards: counts of a label differ by at most 1."""
    order = torch.argsort(y, stable=True)
    return [order[k::groups] for k in range(groups)]


def dot(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    """<a, b> of two vectors that are given in parts."""
    return torch.stack([(u * v).sum() for u, v in zip(a, b, strict=True)]).sum()


def steered(value: Tensor, parameters: Sequence[Tensor], direction: Sequence[Tensor]) -> Tensor:
    """A loss with that value and that gradient."""
    slope = dot(parameters, direction)
    return value + slope - slope.detach()
