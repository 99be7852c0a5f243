"""Truncated generalised cross-entropy (Zhang & Sabuncu 2018): labels that stay improbable are left out.

L = 1/B sum_i w_i (L_q(p_i) - L_q(k))            L_q(p) = (1 - p^q) / q
w_i = 1 if p_i > k, else 0                       set for all examples now and then, from a point of the run on

p_i   the probability that the network gives to the given label of example i
k     the least probability of a label that is still learnt from

For given w the loss is that of the paper, sum_i w_i L_q(p_i) + L_q(k) sum_i (1 - w_i), less a constant; and the best w
for a given network is the one above. The method takes the two in turn. A class of which less than 1/K of the labels
would be kept is not known to the network yet and keeps all of them; otherwise it could never be learnt.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import gce, probabilities
from rte.settings import Settings, setting
from rte.views.batch import Batch


class TruncatedGCE(Method):
    """GCE on the examples whose label is probable enough."""

    summary = "truncated GCE: generalised cross-entropy that leaves out labels of low probability"
    paper = "Zhang & Sabuncu, 2018"

    class Config(Settings):
        q: float = setting(0.7, "0 is cross-entropy, 1 is mean absolute error", ge=0.0, le=1.0, search=(0, 1))
        k: float = setting(0.5, "labels less probable than this are left out", gt=0.0, lt=1.0, search=(0.05, 0.8))
        start: float = setting(
            0.33, "share of the run before labels are left out; the authors: 40 of 120 epochs", ge=0.0, lt=1.0
        )
        every: float = setting(
            0.083, "share of the run after which they are chosen anew; the authors: 10 of 120 epochs", gt=0.0, le=1.0
        )

    cfg: Config
    kept: Tensor
    rounds: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.register_buffer("kept", torch.ones(len(task.y)))  # w
        self.register_buffer("rounds", torch.tensor(0))  # until which w has been set, counted from `start`

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        due = math.floor((t.fraction - self.cfg.start) / self.cfg.every + 1e-6) + 1
        if t.epoch == 0 or due <= int(self.rounds):
            return {}
        self.rounds.fill_(due)
        y, probable = self.y.cpu(), self._given(sweep).cpu() > self.cfg.k  # a GPU has no fixed order of sums by index
        share = torch.bincount(y, probable.float(), self.classes) / torch.bincount(y, minlength=self.classes)
        unlearnt = share < 1.0 / self.classes  # less than chance: the network does not know the class yet
        self.kept.copy_(probable | unlearnt[y])
        return {"kept": float(self.kept.mean()), "whole": float(unlearnt.sum())}

    def _given(self, sweep: Sweep) -> Tensor:
        """The probability of each given label (N,)."""
        return probabilities(sweep(self.net)).gather(1, self.y[:, None]).squeeze(1)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        kept, losses = self.kept[batch.i], gce(self.net(batch.x), batch.y, self.cfg.q)
        return {"loss": (kept * (losses - self._limit())).mean(), "task": losses.mean(), "kept": kept.mean()}

    def _limit(self) -> float:
        """L_q(k)."""
        return float(gce(torch.tensor([[self.cfg.k, 1.0 - self.cfg.k]]).log(), torch.tensor([0]), self.cfg.q))

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """Half for a label that is still learnt from, half by its predicted probability."""
        return (self.kept + self._given(sweep)) / 2
