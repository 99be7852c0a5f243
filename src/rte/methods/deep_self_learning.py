"""Deep self-learning (Han 2019, SMP): several prototypes per class say which label each image should have.

L = (1 - a) CE(f, y) + a CE(f, y')          a = 0 in the warm-up

y    the given, perhaps wrong, label
y'   the corrected label: argmax_c of the mean cosine of z(x) with the prototypes of class c; anew before each epoch
z    the network's features, what its last layer sees, of images without augmentation

Prototypes of class c: of at most m examples with given label c, the p in the densest surroundings that are no copies of
a denser one (`rte.parts.prototypes`). Wrong labels of a class are of many kinds and lie apart, right ones lie together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy
from rte.parts.prototypes import densest, prototype_labels
from rte.settings import Settings, setting
from rte.views.batch import Batch


class DeepSelfLearning(Method):
    """Cross-entropy with the given label and with one that prototypes have corrected."""

    summary = "deep self-learning: half the loss is with labels corrected by several prototypes of each class"
    paper = "Han et al., 2019"

    class Config(Settings):
        warmup: float = setting(
            0.07, "share of the run with given labels alone; the authors: 1 of 15 epochs", ge=0.0, le=1.0
        )
        weight: float = setting(0.5, "a, share of the loss with corrected labels", ge=0.0, le=1.0, search=(0, 1))
        prototypes: int = setting(8, "p, prototypes per class at most", ge=1, search=[1, 2, 4, 8, 16])
        examples: int = setting(1280, "m, examples of a class among which they are looked for", ge=1)
        quantile: float = setting(0.6, "of all cosines, above which two examples are neighbours", ge=0.0, lt=1.0)
        distinct: float = setting(0.95, "likeness to a denser example from which one is its copy", gt=-1.0, le=1.0)

    cfg: Config
    corrected: Tensor
    begun: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.register_buffer("corrected", task.y.clone())
        self.register_buffer("begun", torch.tensor(False))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if t.epoch == 0 or t.fraction < self.cfg.warmup:
            return {}
        z = sweep(getattr(self.net, "features", self.net))
        rows, classes = self._prototypes(z)
        self.corrected = prototype_labels(z, z[rows], classes)
        self.begun.fill_(True)
        return {"prototypes": len(rows), "corrected": (self.corrected != self.y).float().mean()}

    def _prototypes(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of z that are prototypes, and the class of each; a class without examples has none."""
        cfg, rows, classes = self.cfg, [], []
        for c in range(self.classes):
            own = (self.y == c).nonzero().squeeze(1)
            if len(own):
                own = own[torch.randperm(len(own))[: cfg.examples].to(own.device)]
                rows.append(own[densest(z[own], cfg.prototypes, quantile=cfg.quantile, distinct=cfg.distinct)])
                classes.append(torch.full_like(rows[-1], c))
        return torch.cat(rows), torch.cat(classes)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = self.net(batch.x)
        given = cross_entropy(logits, batch.y).mean()
        if not self.begun:
            return {"loss": given, "given": given}
        own, a = cross_entropy(logits, self.corrected[batch.i]).mean(), self.cfg.weight
        return {"loss": (1 - a) * given + a * own, "given": given, "own": own}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The mean of the given label's predicted probability and of whether the prototypes confirm it."""
        predicted = super().trust(sweep)
        return (predicted + (self.corrected == self.y)) / 2 if self.begun else predicted
