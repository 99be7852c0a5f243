"""ELR+ (Liu 2020): early-learning regularisation with two networks, averages of their weights, and mixup.

    L_f = CE(p, y~) + lambda w(u) mean log(1 - <q, p>)         p = softmax f(x~), inside [1e-4, 1 - 1e-4] in <q, p>
    x~  = l x_i + (1 - l) x_j,  y~ and q likewise              l = max(l', 1 - l'), l' ~ Beta(alpha, alpha)
    t_i <- beta t_i + (1 - beta) softmax g'(x_i)               targets of f: g' is the average of the other's weights

w(u) = exp(-5 (1 - u)^2), u the share of the ramp that lies behind. So each network is held back by what the other one
believed early on. With `relabel` the mixed label is y~ <- q y~, normalised.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Sweep, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import probabilities, soft_cross_entropy
from rte.parts.mixing import draw, mix
from rte.parts.schedules import Schedule, constant, risen
from rte.settings import Settings, setting
from rte.views.batch import Batch

MARGIN = 1e-4
"""How far probabilities are kept from 0 and 1, which bounds the logarithm."""


class EarlyLearningPlus(Method):
    """Two networks, each regularised by targets from the average of the other."""

    summary = "ELR+: early-learning regularisation with two networks, weight averages and mixup"
    paper = "Liu et al., 2020"

    class Config(Settings):
        weight: Schedule = setting(constant(3.0), "lambda of the regulariser; 7 for CIFAR-100", search=(0, 10), ge=0)
        beta: float = setting(
            0.7, "how slowly the targets follow; 0.9 for CIFAR-100", ge=0.0, lt=1.0, search=(0.5, 0.99)
        )
        alpha: float = setting(1.0, "of mixup's Beta(alpha, alpha); 0: no mixing", ge=0.0)
        decay: float = setting(0.997, "of the averages of the weights, in the end", ge=0.0, lt=1.0, search=(0.9, 0.999))
        averaging: float = setting(
            0.5, "share of the run until that decay is reached; the authors: 40,000 of 78,000 steps", ge=0, le=1
        )
        ramp: float = setting(
            0.0,
            "share of the run in which lambda rises; for CIFAR-100 the authors: 0.41",
            ge=0,
        )
        relabel: bool = setting(False, "multiply labels by the targets; the authors: for CIFAR-100")

    cfg: Config
    tables = ("targets",)
    targets: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.nets = nn.ModuleList([task.build(0), task.build(1)])
        self.averages = nn.ModuleList([EMA(net, decay=cfg.decay) for net in self.nets])
        self.register_buffer("targets", torch.zeros(len(task.y), 2, task.classes))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        first, second = (self._one(k, batch, t) for k in range(2))
        # the networks share no weights: the gradient of the sum is each one's own
        both = {name: (first[name] + second[name]) / 2 for name in ("task", "elr")}
        return {"loss": first["loss"] + second["loss"], **both}

    def _one(self, k: int, batch: Batch, t: Progress) -> dict[str, Tensor]:
        cfg, (share, order) = self.cfg, draw(len(batch), self.cfg.alpha, dominant=True)
        order = order.to(batch.y.device)
        q = mix(self._remember(k, batch), share, order)
        y = mix(F.one_hot(batch.y, self.classes).to(q.dtype), share, order)
        if cfg.relabel:
            y = y * q
            y = y / y.sum(1, keepdim=True).clamp(min=MARGIN)
        logits = self.nets[k](mix(batch.x, share, order))
        p = probabilities(logits).clamp(MARGIN, 1 - MARGIN)
        task, elr = soft_cross_entropy(logits, y).mean(), torch.log1p(-(q * p).sum(1)).mean()
        return {"loss": task + cfg.weight.at(t) * risen(t, cfg.ramp) * elr, "task": task, "elr": elr}

    @torch.no_grad()
    def _remember(self, k: int, batch: Batch) -> Tensor:
        """The targets of network k after a look at the batch through the average of the other, (B, K)."""
        p = probabilities(self.averages[1 - k](batch.x)).clamp(MARGIN, 1 - MARGIN)
        p, beta = p / p.sum(1, keepdim=True), self.cfg.beta
        self.targets[batch.i, k] = beta * self.targets[batch.i, k] + (1 - beta) * p
        return self.targets[batch.i, k]

    def after_step(self, t: Progress) -> None:
        for net, average in zip(self.nets, self.averages, strict=True):
            assert isinstance(average, EMA)
            average.update(net, decay=self.cfg.decay * risen(t, self.cfg.averaging))

    def cost(self, t: Progress) -> float:
        return 8.0

    def predict(self, x: Tensor) -> Tensor:
        """The mean of the logits of both networks."""
        return torch.stack([net(x) for net in self.nets]).mean(0)

    def networks(self) -> dict[str, Predict]:
        averages = {"first_average": self.averages[0], "second_average": self.averages[1]}
        return {"first": self.nets[0], "second": self.nets[1], **averages}

    def trust(self, sweep: Sweep) -> Tensor:
        """The mean of both targets' entries for the given label."""
        return self.targets.mean(1).gather(1, self.y[:, None]).squeeze(1).clamp(0, 1)
