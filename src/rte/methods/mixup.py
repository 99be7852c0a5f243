"""Mixup (Zhang 2018): train on the straight line between two images, with the labels of both.

x~ = l x_a + (1 - l) x_b          l ~ Beta(alpha, alpha), one for the batch; b: a random order of the batch
L  = l CE(f(x~), y_a) + (1 - l) CE(f(x~), y_b)

A wrong label would have to be memorised anew for every partner and every l, which is harder the nearer l is to 1/2: a
large alpha.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import soft_cross_entropy
from rte.parts.mixing import mixup
from rte.settings import Settings, setting
from rte.views.batch import Batch


class Mixup(Method):
    """Cross-entropy on mixed images and labels."""

    summary = "mixup: cross-entropy on mixtures of two images and of their labels"
    paper = "Zhang et al., 2018"

    class Config(Settings):
        alpha: float = setting(
            8.0,
            "of Beta(alpha, alpha); the authors: 8 or 32, of clean labels 1 or less",
            ge=0.0,
            search=(0.2, 32.0),
        )

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        mixed = mixup(batch.x, F.one_hot(batch.y, self.classes).to(batch.x.dtype), alpha=self.cfg.alpha)
        return {"loss": soft_cross_entropy(self.net(mixed.x), mixed.targets).mean(), "weight": mixed.weight}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
