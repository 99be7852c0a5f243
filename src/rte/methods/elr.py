"""Early-learning regularisation (Liu 2020): keep the network near what it believed before it began to memorise.

    L = CE + lambda * mean log(1 - <t_i, p_i>)            t_i <- beta t_i + (1 - beta) p_i, without gradient

    p_i    softmax of the network on example i, kept inside [1e-4, 1 - 1e-4]
    t_i    the running target of example i, a row of a table that starts at zero

The logarithm falls as p_i turns towards t_i, so an example whose prediction has settled pulls back where its given
label would pull it away.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy, probabilities
from rte.parts.schedules import Schedule, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch

MARGIN = 1e-4
"""How far probabilities are kept from 0 and 1, which bounds the logarithm."""


class EarlyLearningRegularisation(Method):
    """Cross-entropy, and a regulariser that keeps each prediction near its own running average."""

    summary = "early-learning regularisation: cross-entropy held back by a running average of each prediction"
    paper = "Liu et al., 2020"

    tables = ("targets",)

    class Config(Settings):
        weight: Schedule = setting(constant(3.0), "lambda of the regulariser", search=(0, 10), ge=0)
        beta: float = setting(0.7, "how slowly the targets follow the predictions", ge=0.0, lt=1.0, search=(0.5, 0.99))

    cfg: Config
    targets: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.register_buffer("targets", torch.zeros(len(task.y), task.classes))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = self.net(batch.x)
        p = probabilities(logits).clamp(MARGIN, 1 - MARGIN)
        target = self._remember(batch.i, p.detach())
        task = cross_entropy(logits, batch.y).mean()
        elr = torch.log1p(-(target * p).sum(1)).mean()
        return {"loss": task + self.cfg.weight.at(t) * elr, "task": task, "elr": elr}

    def _remember(self, i: Tensor, p: Tensor) -> Tensor:
        """t_i <- beta t_i + (1 - beta) p_i / sum p_i; returns the new rows (B, K)."""
        beta = self.cfg.beta
        self.targets[i] = beta * self.targets[i] + (1 - beta) * p / p.sum(1, keepdim=True)
        return self.targets[i]

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The given label's entry in the table of targets: what was believed over many epochs, not only at the end."""
        return self.targets.gather(1, self.y[:, None]).squeeze(1)
