"""Generalised Jensen-Shannon loss (Englesson & Azizpour 2021): one divergence of the label and two predictions.

    L = Z * JS_pi(y, p(A_1(x)), p(A_2(x))),        JS_pi(d_1, ..., d_n) = sum_i pi_i KL(d_i || sum_j pi_j d_j)

pi = (pi_1, (1 - pi_1) / 2, (1 - pi_1) / 2), and Z = -1 / ((1 - pi_1) log(1 - pi_1)). With one view, JS alone: pi_1
near 0 makes it cross-entropy, near 1 the absolute error. The divergence of the two predictions is part of it, so it
asks for consistency between views where the label cannot be fitted.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import jensen_shannon, probabilities
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan


class GeneralisedJensenShannon(Method):
    """A weighted divergence between the given label and predictions on strong views."""

    summary = "GJS: one Jensen-Shannon divergence between the label and the predictions on two strong views"
    paper = "Englesson & Azizpour, 2021"

    class Config(Settings):
        label_weight: float = setting(
            0.3,
            "pi_1; the authors at 0, 20, ... 80 %: 0.5, 0.3, 0.9, 0.1, 0.1",
            gt=0.0,
            lt=1.0,
            search=(0.1, 0.9),
        )
        views: int = setting(2, "strong views that share 1 - pi_1; 1 is the loss JS", ge=1, le=8)
        scaled: bool = setting(True, "times Z; the authors leave it out on WebVision")

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(strong=self.cfg.views)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, n = self.cfg, self.cfg.views
        p = probabilities(self.net(batch.views[len(batch) :])).view(n, len(batch), -1)
        y = F.one_hot(batch.y, self.classes).to(p.dtype)
        pi = [cfg.label_weight, *[(1 - cfg.label_weight) / n] * n]
        js = jensen_shannon(torch.cat([y[None], p]), weights=pi).mean()
        rest = 1 - cfg.label_weight
        scale = -1 / (rest * math.log(rest)) if cfg.scaled else 1.0
        terms: Terms = {"consistency": jensen_shannon(p.detach()).mean()} if n > 1 else {}
        return {"loss": scale * js, "js": js, **terms}

    def cost(self, t: Progress) -> float:
        return 3.0 * self.cfg.views  # the weak view is only what the strong ones are made of

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
