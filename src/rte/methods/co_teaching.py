"""Co-teaching (Han 2018): of each batch, each of two networks learns what the other finds easiest.

    keep   R(T) = 1 - tau * min(T^c / T_k, 1) of the batch in epoch T = 0, 1, ...
    E_k    the R(T) B examples on which network k has the smallest cross-entropy
    L      mean CE of network 1 on E_2, plus mean CE of network 2 on E_1

Networks learn the majority before the exceptions, so a small loss is a sign of a right label; because the two differ,
neither can confirm its own mistakes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.losses import cross_entropy
from rte.settings import Settings, setting
from rte.views.batch import Batch


class CoTeaching(Method):
    """Two networks that choose each other's examples."""

    summary = "co-teaching: two networks, each trained on the examples of small loss in the other's eyes"

    class Config(Settings):
        noise_rate: float = setting(
            0.2, "tau: share of wrong labels, which has to be known or guessed", ge=0.0, lt=1.0, search=(0, 0.9)
        )
        ramp: int = setting(10, "T_k: epochs until the full share tau is left out", ge=1)
        exponent: float = setting(1.0, "c: the shape of the ramp; 1 is a straight line", gt=0.0)

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.nets = nn.ModuleList([task.build(0), task.build(1)])

    def keep(self, t: Progress) -> float:
        """R(T), the share of a batch that is learnt from."""
        return 1.0 - self.cfg.noise_rate * min(math.pow(t.epoch, self.cfg.exponent) / self.cfg.ramp, 1.0)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        n = max(1, round(self.keep(t) * len(batch)))
        one, two = (cross_entropy(net(batch.x), batch.y) for net in self.nets)
        first = one[_smallest(two, n)].mean()
        second = two[_smallest(one, n)].mean()
        # the networks share no weights: the gradient of the sum is each one's own
        return {"loss": first + second, "first": first, "second": second, "kept": n / len(batch)}

    def cost(self, t: Progress) -> float:
        return 6.0

    def predict(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of both softmaxes, whose softmax is that mean."""
        each = torch.stack([net(x).log_softmax(1, dtype=torch.float32) for net in self.nets])
        return each.logsumexp(0) - math.log(len(self.nets))

    def networks(self) -> dict[str, Predict]:
        return {"first": self.nets[0], "second": self.nets[1]}


def _smallest(losses: Tensor, n: int) -> Tensor:
    """The places of the n smallest of (B,) losses."""
    return losses.detach().topk(n, largest=False).indices
