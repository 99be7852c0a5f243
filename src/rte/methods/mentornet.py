"""MentorNet PD (Jiang 2018): a student learns by a predefined curriculum of example weights.

    m    <- d m + (1 - d) (p-th quantile of the batch's losses)                        d = 0.5
    v_i  = 1                                    in the first 19 of 100 parts of the run
         = [l_i <= m]                           until part 90: self-paced learning
         = clip(1 - (l_i - m) / gamma, 0, 1)    in the last ten parts
    L    = 1/B sum_i s_i v_i l_i                s: 1 for floor((1 - r) B) examples drawn at random, 0 for the others

l_i is cross-entropy with the given label. The paper trains a small network, the mentor, to output v; where v is
predefined (PD) the mentor has nothing to add to the formula, so the formula itself stands here.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy
from rte.parts.noise_rate import NoiseRate
from rte.settings import Settings, setting
from rte.views.batch import Batch

NOISY = 0.6
"""From this share of wrong labels on, the lower of the authors' two quantiles is used: theirs are for 0.4 and 0.8."""


class MentorNet(Method):
    """Cross-entropy with weights that a curriculum sets by the loss."""

    summary = "MentorNet PD: small losses first, by a predefined curriculum of example weights"
    paper = "Jiang et al., 2018"
    needs = ("noise rate",)

    class Config(Settings):
        noise_rate: float | None = setting(
            None, "share of wrong labels, which chooses p; none: the run's own estimate", ge=0.0, lt=1.0
        )
        percentile: float | None = setting(
            None, "p: share of a batch below the threshold; none: 0.75, from 60 % noise 0.5", gt=0.0, le=1.0
        )
        memory: float = setting(0.5, "d: how slowly the threshold m follows", ge=0.0, lt=1.0)
        warmup: float = setting(
            0.19, "share of the run in which all weights are 1; the authors: 19 of 100 parts", ge=0.0, le=1.0
        )
        soft: float = setting(0.9, "share of the run after which weights fall gradually", ge=0.0, le=1.0)
        gamma: float = setting(1.0, "how far above the threshold a soft weight reaches 0", gt=0.0)
        dropout: float = setting(0.05, "r: share of each batch that is left out at random", ge=0.0, lt=1.0)
        early_dropout: float = setting(0.5, "r at the beginning of the run", ge=0.0, lt=1.0)
        early: float = setting(
            0.17, "share of the run with the early dropout; the authors: 17 of 100 parts", ge=0.0, le=1.0
        )

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.noise = NoiseRate(task.classes)
        self.threshold = Threshold()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, logits = self.cfg, self.net(batch.x)
        self.noise.update(logits.detach(), batch.y, t)
        noise = self.noise.at(t, cfg.noise_rate)
        each = cross_entropy(logits, batch.y)
        p = cfg.percentile or (0.5 if noise >= NOISY else 0.75)
        m = self.threshold.follow(each.detach(), p, cfg.memory)
        v = self.weights(each.detach() - m, t) * sampled(
            each, cfg.early_dropout if t.fraction < cfg.early else cfg.dropout
        )
        return {"loss": (v * each).mean(), "weight": v.mean(), "threshold": m.clone(), "noise": noise}

    def weights(self, excess: Tensor, t: Progress) -> Tensor:
        """v (B,), from how far each loss is above the threshold."""
        if t.epoch == 0 or t.fraction < self.cfg.warmup:
            return torch.ones_like(excess)
        if t.fraction < self.cfg.soft:
            return (excess <= 0).to(excess.dtype)
        return (1 - excess / self.cfg.gamma).clamp(0, 1)

    def running(self) -> Iterator[nn.Module]:
        yield from (*super().running(), self.threshold)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits


class Threshold(nn.Module):
    """m, the running quantile of losses; it starts at 0."""

    m: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("m", torch.zeros(()))

    def follow(self, losses: Tensor, p: float, memory: float) -> Tensor:
        """See the losses (B,) of a batch; returns m."""
        self.m += (1 - memory) * (torch.quantile(losses, p, interpolation="nearest") - self.m)
        return self.m


def sampled(values: Tensor, rate: float) -> Tensor:
    """1 for a share of 1 - rate of (B,) places drawn at random, at least one of them; 0 for the others."""
    n = len(values)
    chosen = torch.randperm(n)[: max(1, int(n * (1 - rate)))].to(values.device)
    return torch.zeros_like(values).index_fill(0, chosen, 1.0)
