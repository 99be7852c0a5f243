"""FixMatch (Sohn 2020) with every example labelled: what is sure on a weak view is the label of a strong view.

L = L_q(x, y) + w * 1/B sum_b [max_k p_k(x_b) >= tau] * CE(f(A(x_b)), argmax_k p_k(x_b))

x   the weak view (random crop and flip)        A(x)  a strong view of that same x
p   softmax f(x), without gradient              y     the given, perhaps wrong, label

The mean goes over the whole batch, so that few sure predictions have little weight. Reported is a moving average of the
weights, which has no part in training. q = 0, the default, is cross-entropy.
"""

from __future__ import annotations

from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import cross_entropy, gce, probabilities
from rte.parts.schedules import Schedule, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan


class FixMatch(Method):
    """Hard targets of the student itself, from the weak view for the strong one."""

    summary = "FixMatch: cross-entropy, and what is predicted with certainty on a weak view for the strong view too"
    paper = "Sohn et al., 2020"

    class Config(Settings):
        q: Schedule = setting(
            constant(0.0), "task loss: 0 is cross-entropy, 1 is mean absolute error", search=(0, 1), ge=0, le=1
        )
        weight: Schedule = setting(constant(1.0), "w of the strong view's loss", search=(0, 10), ge=0)
        threshold: float = setting(
            0.95, "tau: predictions at least this sure are taken as labels", ge=0.0, le=1.0, search=(0.5, 0.99)
        )
        decay: float = setting(0.999, "of the moving average that is reported", ge=0.0, lt=1.0)
        warmup: bool = setting(True, "let it follow faster at first: min(decay, (1 + k) / (10 + k))")

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        self.average = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup)

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(strong=1)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg = self.cfg
        weak, strong = self.student(batch.views).split(len(batch))  # one batch: shared batch-norm statistics
        task = gce(weak, batch.y, cfg.q.at(t)).mean()
        sureness, target = probabilities(weak.detach()).max(1)
        sure = sureness >= cfg.threshold
        guided = (sure * cross_entropy(strong, target)).mean()
        loss = task + cfg.weight.at(t) * guided
        return {"loss": loss, "task": task, "guided": guided, "sure": sure.float().mean()}

    def after_step(self, t: Progress) -> None:
        self.average.update(self.student, decay=self.cfg.decay)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.average(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {"student": self.student}
