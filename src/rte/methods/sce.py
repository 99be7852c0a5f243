"""Symmetric cross-entropy (Wang 2019): learn the label from the prediction, and the prediction from the label.

    L = alpha CE(y, p) + beta RCE,        RCE = -sum_k p_k log y_k = -A (1 - p_y)

log 0 is set to A = log(1e-4). The reverse term is the absolute error up to a factor: it resists wrong labels but learns
slowly, and cross-entropy, with a small weight, makes it converge.
"""

from __future__ import annotations

import math

from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy, gce
from rte.settings import Settings, setting
from rte.views.batch import Batch


class SymmetricCrossEntropy(Method):
    """Cross-entropy in both directions."""

    summary = "symmetric cross-entropy: little cross-entropy, and as much of it with label and prediction exchanged"
    paper = "Wang et al., 2019"

    class Config(Settings):
        alpha: float = setting(
            0.1, "weight of cross-entropy; the authors: 0.1 for CIFAR-10, 6 for CIFAR-100", ge=0.0, search=(0.01, 10)
        )
        beta: float = setting(
            1.0, "weight of the reverse one; the authors: 1 for CIFAR-10, 0.1 for CIFAR-100", ge=0.0, search=(0.1, 10)
        )
        zero: float = setting(1e-4, "what a label of 0 counts as inside the logarithm", gt=0.0, lt=1.0)

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, logits = self.cfg, self.net(batch.x)
        forward = cross_entropy(logits, batch.y).mean()
        reverse = -math.log(cfg.zero) * gce(logits, batch.y, 1.0).mean()
        return {"loss": cfg.alpha * forward + cfg.beta * reverse, "ce": forward, "rce": reverse}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
