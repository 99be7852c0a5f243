"""Co-teaching (Han 2018): of each batch, each of two networks learns what the other finds easiest.

    keep   R(s) = 1 - tau * min((s / r)^c, 1) of the batch, s the share of the run that lies behind
    E_k    the R(s) B examples on which network k has the smallest cross-entropy
    L      mean CE of network 1 on E_2, plus mean CE of network 2 on E_1

Networks learn the majority before the exceptions, so a small loss is a sign of a right label; because the two differ,
neither can confirm its own mistakes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.losses import cross_entropy, log_mean_probabilities
from rte.parts.noise_rate import NoiseRate
from rte.settings import Settings, setting
from rte.views.batch import Batch


class CoTeaching(Method):
    """Two networks that choose each other's examples."""

    summary = "co-teaching: two networks, each trained on the examples of small loss in the other's eyes"
    paper = "Han et al., 2018"

    class Config(Settings):
        noise_rate: float | None = setting(
            None, "tau: share of wrong labels; unless given, the run's own estimate", ge=0.0, lt=1.0, search=(0, 0.9)
        )
        ramp: float = setting(
            0.05,
            "r: share of the run until tau is reached, an epoch at least; the authors: 10 of 200",
            ge=0.0,
            le=1.0,
        )
        exponent: float = setting(1.0, "c: the shape of the ramp; 1 is a straight line", gt=0.0)

    cfg: Config
    needs = ("noise rate",)

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.nets = nn.ModuleList([task.build(0), task.build(1)])
        self.noise = NoiseRate(task.classes)

    def keep(self, t: Progress) -> float:
        """R(s), the share of a batch that is learnt from."""
        ramp = max(self.cfg.ramp, 1 / t.epochs)
        risen = math.pow(min(t.fraction / ramp, 1.0), self.cfg.exponent)
        return 1.0 - self.noise.at(t, self.cfg.noise_rate) * risen

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = [net(batch.x) for net in self.nets]
        self.noise.update(torch.stack(logits).detach().mean(0), batch.y, t)
        n = max(1, round(self.keep(t) * len(batch)))
        one, two = (cross_entropy(each, batch.y) for each in logits)
        first = one[_smallest(two, n)].mean()
        second = two[_smallest(one, n)].mean()
        # the networks share no weights: the gradient of the sum is each one's own
        return {"loss": first + second, "first": first, "second": second, "kept": n / len(batch)}

    def cost(self, t: Progress) -> float:
        return 6.0

    def predict(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of both softmaxes, whose softmax is that mean."""
        return log_mean_probabilities([net(x) for net in self.nets])

    def networks(self) -> dict[str, Predict]:
        return {"first": self.nets[0], "second": self.nets[1]}


def _smallest(losses: Tensor, n: int) -> Tensor:
    """The places of the n smallest of (B,) losses."""
    return losses.detach().topk(n, largest=False).indices
