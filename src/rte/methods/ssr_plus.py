"""SSR+ (Feng 2022): in every epoch, relabel where the network is sure and keep what its neighbours agree with.

    y'_i   argmax p(x_i) where max p(x_i) > theta_r, else the given label                    anew from it in each epoch
    keep   i if the vote for y'_i is theta_s of the largest vote at least: votes of the k nearest neighbours by cosine
           of features, itself included, each for its own y', divided by how often the class occurs
    L      CE on kept examples, two strong views, mixed, with y'; as many draws of each class as of the largest
           - lambda mean cos(h(g(A(x))), g(x)) on all examples                               g(x) without gradient

g and h are small networks on top of the features. Nothing has to be known of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.methods.base import Method, Pass, Progress, Sweep, Task, Terms
from rte.parts.losses import probabilities, soft_cross_entropy
from rte.parts.mixing import mixup
from rte.parts.voting import balanced, vote
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan

PLAN = ViewPlan(weak=1, strong=1, second=ViewPlan(weak=1, strong=2))
HIDDEN, CODE = 256, 128
"""Widths of g and h."""
CROWD = 0.4
"""Of a mean class, the share that may vote at most: 200 neighbours on CIFAR-100."""


class SelectionRelabelling(Method):
    """Balanced training on what neighbours confirm, and consistency of features on everything."""

    summary = "SSR+: relabel where the network is sure, learn what neighbours confirm, keep features alike on all"
    paper = "Feng et al., 2022"

    class Config(Settings):
        sure: float = setting(
            0.9, "theta_r; the authors: 0.9 at 20 % noise, 0.8 from 50 % on", ge=0.0, le=1.0, search=(0.6, 0.99)
        )
        agreement: float = setting(1.0, "theta_s: 1 keeps labels that win the vote", ge=0.0, le=1.0)
        neighbours: int = setting(200, "k, or 0.4 of a mean class where that is less", ge=1)
        consistency: float = setting(1.0, "lambda; 0 is SSR", ge=0.0, search=(0, 5))
        alpha: float = setting(4.0, "of mixup's Beta(alpha, alpha); 0: no mixing", ge=0.0)

    cfg: Config
    labels: Tensor
    draws: Tensor
    support: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.project, self.foresee = _mlp(int(self.net.width)), _mlp(CODE)  # type: ignore[arg-type]
        self.register_buffer("labels", task.y.clone())
        self.register_buffer("draws", torch.ones(len(task.y), dtype=torch.int64))  # of an example, in this epoch
        self.register_buffer("support", torch.ones(len(task.y)))  # the given label's vote over the largest

    def views(self, t: Progress) -> ViewPlan:
        return PLAN

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        cfg, width = self.cfg, int(self.net.width)  # type: ignore[arg-type]
        features, logits = sweep(self._both).tensor_split([width], dim=1)
        confidence, predicted = probabilities(logits).max(1)
        self.labels = torch.where(confidence > cfg.sure, predicted, self.y)
        k = min(cfg.neighbours, max(1, round(CROWD * len(self.y) / self.classes)))
        votes = vote(features, self.labels, self.classes, k)
        largest = votes.max(1).values
        kept = votes.gather(1, self.labels[:, None]).squeeze(1) >= cfg.agreement * largest
        self.support = votes.gather(1, self.y[:, None]).squeeze(1) / largest
        self.draws = balanced(self.labels, kept, confidence)
        return {"kept": kept.float().mean(), "relabelled": (self.labels != self.y).float().mean()}

    def passes(self, t: Progress) -> Sequence[Pass]:
        return [Pass(second=self.draws.nonzero().squeeze(1).repeat_interleave(self.draws[self.draws > 0]))]

    def loss(self, batch: Batch, t: Progress) -> Terms:
        terms: Terms = {}
        loss = 0.0 * next(self.net.parameters()).sum()  # so that there is a gradient whatever is missing
        if batch.second is not None:
            x = torch.cat([batch.second.strong(0), batch.second.strong(1)])
            y = F.one_hot(self.labels[batch.second.i], self.classes).to(x.dtype)
            mixed = mixup(x, y.repeat(2, 1), alpha=self.cfg.alpha, dominant=True)
            loss = terms["task"] = soft_cross_entropy(self.net(mixed.x), mixed.targets).mean()
        if self.cfg.consistency and len(batch) > 1:  # batch norm in g and h needs two
            terms["alike"] = alike = self._alike(batch)
            loss = loss - self.cfg.consistency * alike
        return {"loss": loss, **terms}

    def _both(self, x: Tensor) -> Tensor:
        """Features and logits side by side."""
        return torch.cat(self.net.with_features(x), 1)  # type: ignore[operator]

    def _alike(self, batch: Batch) -> Tensor:
        """The mean cosine of what the strong views foretell and what the weak ones are."""
        weak, strong = (self.net.features(x) for x in (batch.weak(0), batch.strong(0)))  # type: ignore[operator]
        with torch.autocast(weak.device.type, enabled=False):
            z, hoped = self.project(weak.float()), self.foresee(self.project(strong.float()))
            return F.cosine_similarity(hoped, z.detach()).mean()

    def cost(self, t: Progress) -> float:
        return 12.0

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The given label's vote over the largest, at the start of this epoch."""
        return self.support


def _mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CODE))
