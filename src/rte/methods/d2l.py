"""D2L (Ma 2018): when features begin to take up more dimensions, the network memorises; from then on it is trusted too.

LID_e    mean local intrinsic dimensionality of the features of random training images, before epoch e
turn     the first epoch with LID_e - mean(LID of the epochs before) > 2 std(the same)
before   L = CE(p, y)
after    L = alpha CE(p, y) + (1 - alpha) CE(p, argmax p)        alpha = exp(-e/E * LID_e / min LID)

p        softmax of the network; argmax p is a constant for the gradient
e/E      share of the run that lies behind

Dimensionality falls while a network learns what images have in common, and rises when it makes room for single wrong
labels. At the turn the weights of the epoch before come back. One alpha holds for all examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.dimensionality import mean_dimensionality
from rte.parts.ema import EMA
from rte.parts.losses import cross_entropy
from rte.settings import Settings, setting
from rte.views.batch import Batch

EXAMPLES = 1280
"""Training images whose features are measured."""
RISE = 2.0
"""How many standard deviations above the mean a score has to lie."""
SHORTEST, LONGEST = 3, 32
"""Scores that are compared with, at least and at most."""


class DimensionalityDriven(Method):
    """Cross-entropy, and bootstrapping as soon as the features' dimensionality rises."""

    summary = "D2L: bootstraps labels from the moment the dimensionality of the features rises"
    paper = "Ma et al., 2018"
    needs = ("hidden layers",)

    class Config(Settings):
        wait: float = setting(
            0.33, "share of the run before scores are compared; the authors: 40 of 120 epochs", ge=0.0, lt=1.0
        )
        window: float = setting(
            0.04,
            "share of the run scores are compared with, 3 epochs at least; authors: 5 of 120",
            gt=0.0,
            le=0.5,
        )
        neighbours: int = setting(20, "k: neighbours that dimensionality is estimated from", ge=2)
        least: float = setting(0.0, "alpha is not lower than this; 0: the authors'", ge=0.0, le=1.0, search=(0, 1))

    cfg: Config
    scores: Tensor
    count: Tensor
    lowest: Tensor
    alpha: Tensor
    turned: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.before = EMA(self.net)  # an exact copy, of an epoch ago
        self.register_buffer("scores", torch.zeros(LONGEST))  # newest first
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("lowest", torch.tensor(math.inf))
        self.register_buffer("alpha", torch.tensor(1.0))
        self.register_buffer("turned", torch.tensor(-1))  # the epoch

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        features = sweep(getattr(self.net, "features", self.net))
        score = mean_dimensionality(features, self.cfg.neighbours, examples=EXAMPLES) or float(self.scores[0])
        if not score:
            return {}
        if int(self.turned) < 0 and self._rises(score, t):
            self.net.load_state_dict(self.before.module.state_dict())
            self.turned.fill_(t.epoch)
        self.scores.copy_(torch.cat([self.scores.new_tensor([score]), self.scores[:-1]]))
        self.count += 1
        self.lowest.clamp_(max=score)
        if int(self.turned) < 0:
            self.before.restart(self.net)
        else:
            self.alpha.fill_(max(self.cfg.least, math.exp(-t.fraction * score / float(self.lowest))))
        return {"dimensionality": score, "alpha": float(self.alpha)}

    def _rises(self, score: float, t: Progress) -> bool:
        """Whether the score lies well above those of the window before it, all of which lie after `wait`."""
        n = min(LONGEST, max(SHORTEST, round(self.cfg.window * t.epochs)))
        if int(self.count) < n or t.fraction < self.cfg.wait + n / t.epochs - 1e-9:
            return False
        window = self.scores[:n]
        return score - float(window.mean()) > RISE * float(window.std(correction=0))

    def restarted(self, t: Progress) -> Iterable[nn.Parameter]:
        return self.net.parameters() if int(self.turned) == t.epoch else ()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = self.net(batch.x)
        task = cross_entropy(logits, batch.y).mean()
        own = cross_entropy(logits, logits.argmax(1)).mean()
        return {"loss": self.alpha * task + (1 - self.alpha) * own, "task": task, "own": own}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
