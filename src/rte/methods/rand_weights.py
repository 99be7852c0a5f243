"""Random weights (Ren 2018): the control of learning to reweight. Each example counts by chance.

L = sum_i w_i CE_i            w_i = max(u_i, 0) / sum_j max(u_j, 0),    u_i ~ N(0, 1), anew in each step

About half of a batch is left out, and the rest counts unevenly: noise in the gradient, and no trusted example.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy
from rte.parts.weighting import positive_shares
from rte.settings import Settings
from rte.views.batch import Batch


class RandomWeights(Method):
    """Cross-entropy, weighted at random."""

    summary = "random weights: cross-entropy weighted at random in each step, the control of learning to reweight"
    paper = "Ren et al., 2018"

    class Config(Settings):
        pass

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        losses = cross_entropy(self.net(batch.x), batch.y)
        weights = positive_shares(torch.randn(len(batch))).to(losses.device)  # on the CPU: the same on every device
        return {"loss": (weights * losses).sum(), "task": losses.mean()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
