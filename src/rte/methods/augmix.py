"""AugMix (Hendrycks 2020): cross-entropy on the image, and the same prediction on two augmented ones.

    L = CE(p(x), y) + lambda JSD(p(x), p(A_1(x)), p(A_2(x)))

A(x) is the strong view, which AugMix makes of x. Nothing here knows of wrong labels; it is what RTE's terms grew from.
"""

from __future__ import annotations

from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy, jensen_shannon, probabilities
from rte.parts.schedules import Schedule, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan


class AugMixLoss(Method):
    """The objective of the AugMix paper."""

    summary = "AugMix's loss: cross-entropy, and the Jensen-Shannon divergence between a weak and two strong views"
    paper = "Hendrycks et al., 2020"

    class Config(Settings):
        weight: Schedule = setting(constant(12.0), "lambda of the divergence", search=(0, 20), ge=0)

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(strong=2)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = self.net(batch.views).split(len(batch))  # one batch: shared batch-norm statistics
        task = cross_entropy(logits[0], batch.y).mean()
        jsd = jensen_shannon([probabilities(f) for f in logits]).mean()
        return {"loss": task + self.cfg.weight.at(t) * jsd, "task": task, "jsd": jsd}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
