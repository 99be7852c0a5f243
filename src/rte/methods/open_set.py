"""Iterative learning with open-set noisy labels (Wang 2018): outliers of a class are pushed away, and count less.

    s_i   mean over the iterations so far of 1 / LOF of the features of i among those of its given label
    O     of each label, the half of lowest s; I, all others
    v_i   alpha for i in I, alpha s_i for i in O, with alpha = 0.1
    L     mean over pairs (a, b) of  CE_a + v_b CE_b + [same] d^2 + [not same] max(1 - d, 0)^2

d = |z_a - z_b|, z the features. Each a in I of a batch has up to three partners b from it, drawn at random: one of I
with its label (same), one of O with its label (not same), one of I with another label (not same). Before outliers were
looked for, all are in I and v = 1. Images of no class at all (open-set noise) have no label to be corrected to, but may
be recognised by not being like the others.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy
from rte.parts.outliers import inlier_scores, lowest
from rte.settings import Settings, setting
from rte.views.batch import Batch

MARGIN = 1.0
SMALLEST = 1e-7
"""Of a squared distance: the root has no gradient at 0."""
ROUNDING = 1e-6


class OpenSet(Method):
    """A pair loss between inliers, outliers and classes, and smaller weights for outliers."""

    summary = "open-set: outliers of each class, by density of features, are pushed away and count less"
    paper = "Wang et al., 2018"
    needs = ("hidden layers",)

    class Config(Settings):
        iterations: int = setting(10, "trainings, between which outliers are found; at most one in an epoch", ge=2)
        first: float = setting(
            0.05, "share of the run before outliers are looked for; the authors: 5 of 95 epochs", gt=0.0, lt=1.0
        )
        outliers: float = setting(0.5, "share of each label that counts as outliers", gt=0.0, lt=1.0)
        neighbours: float = setting(
            0.4,
            "neighbours of the density, share of the label's examples; the authors: 0.4",
            gt=0.0,
            le=1.0,
        )
        contrast: float = setting(1.0, "weight of the pair loss", ge=0.0)
        second: float = setting(0.1, "alpha: weight of a partner's own loss, from the first outliers on", ge=0.0)

    cfg: Config
    scores: Tensor
    found: Tensor
    done: Tensor
    outlier: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        getattr(self.net, "width", None)  # a network without features is refused here
        self.register_buffer("scores", torch.zeros(len(task.y)))  # summed over the iterations
        self.register_buffer("found", torch.tensor(0))  # how often they were found
        self.register_buffer("done", torch.tensor(0))  # iterations that are over
        self.register_buffer("outlier", torch.zeros(len(task.y), dtype=torch.bool))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        cfg, since = self.cfg, t.fraction - self.cfg.first
        due = 0 if since < -ROUNDING else 1 + int(since / (1 - cfg.first) * (cfg.iterations - 1) + ROUNDING)
        if t.epoch == 0 or due <= int(self.done):
            return {}
        self.done.fill_(due)
        self.scores += inlier_scores(sweep(self.features), self.y, self.classes, neighbours=cfg.neighbours)
        self.found += 1
        self.outlier.copy_(lowest(self.scores, self.y, self.classes, cfg.outliers))
        return {
            "outliers": float(self.outlier.sum()),
            "outlier_score": float(self.score[self.outlier].mean().nan_to_num()),
        }

    @property
    def score(self) -> Tensor:
        """s (N,), kept inside 0..1."""
        return (self.scores / self.found.clamp(min=1)).clamp(0, 1)

    def features(self, x: Tensor) -> Tensor:
        """What the last layer of the network sees, (B, D)."""
        z: Tensor = getattr(self.net, "features", self.net)(x)
        return z

    def loss(self, batch: Batch, t: Progress) -> Terms:
        both = getattr(self.net, "with_features", None)
        z, logits = both(batch.x) if both is not None else 2 * (self.net(batch.x),)
        outlier, each = self.outlier[batch.i], cross_entropy(logits, batch.y)
        v = torch.ones_like(each)
        if self.found > 0:
            v = self.cfg.second * torch.where(outlier, self.score[batch.i], v)
        a, b, same = partners(batch.y, outlier)
        if not len(a):  # outliers alone, or nobody to compare with
            return {"loss": (v * each).mean(), "task": each.mean(), "contrast": 0.0, "pairs": 0.0}
        task, pair = (each[a] + v[b] * each[b]).mean(), contrastive(z[a], z[b], same).mean()
        return {"loss": task + self.cfg.contrast * pair, "task": task, "contrast": pair, "pairs": float(len(a))}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """s; before it is known, the predicted probability."""
        return self.score if self.found > 0 else super().trust(sweep)


def partners(y: Tensor, outlier: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Places a, b of pairs in a batch, and whether they belong together, each (P,): see above."""
    alike, inlier = y[:, None] == y, ~outlier
    itself = torch.eye(len(y), dtype=torch.bool, device=y.device)
    pairs = []
    for allowed, same in ((alike & inlier & ~itself, True), (alike & outlier, False), (~alike & inlier, False)):
        allowed = allowed & inlier[:, None]
        chance = torch.rand(len(y), len(y)).to(y.device).masked_fill(~allowed, -1.0)
        a = allowed.any(1).nonzero().squeeze(1)
        pairs.append((a, chance.argmax(1)[a], torch.full_like(a, int(same))))
    a, b, same_label = (torch.cat(column) for column in zip(*pairs, strict=True))
    return a, b, same_label.bool()


def contrastive(one: Tensor, two: Tensor, same: Tensor) -> Tensor:
    """d^2 where same, else max(MARGIN - d, 0)^2, of features (P, D): (P,)."""
    square = (one.float() - two.float()).square().sum(1).clamp(min=SMALLEST)
    return torch.where(same, square, (MARGIN - square.sqrt()).clamp(min=0).square())
