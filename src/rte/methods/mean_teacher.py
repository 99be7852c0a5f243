"""Mean teacher (Tarvainen & Valpola 2017) with every example labelled: agree with an average of one's own weights.

L = L_q(x, y) + w(t) * 1/K || softmax f(x) - softmax f'(x') ||^2           theta' <- a theta' + (1 - a) theta

f, f'   the student and its teacher         x, x'   two weak views of the same example, one for each
w(t)    weight * exp(-5 (1 - u)^2)          u       share of the ramp that lies behind
a       min(decay, 1 - 1/(k + 1)) after step k = 1, 2, ...: at first the plain average of all weights so far

No gradient goes through the teacher. q = 0, the default, is cross-entropy.
"""

from __future__ import annotations

from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.ema import EMA, mean_at_first
from rte.parts.losses import ensemble_consistency, gce, probabilities
from rte.parts.schedules import Schedule, constant, risen
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan


class MeanTeacher(Method):
    """Consistency of one weak view with the teacher's prediction on another."""

    summary = "mean teacher: cross-entropy, and agreement with a moving average of the weights on another weak view"
    paper = "Tarvainen & Valpola, 2017"

    class Config(Settings):
        q: Schedule = setting(
            constant(0.0), "task loss: 0 is cross-entropy, 1 is mean absolute error", search=(0, 1), ge=0, le=1
        )
        weight: Schedule = setting(constant(100.0), "of the consistency, after its ramp", search=(0, 200), ge=0)
        ramp: float = setting(
            0.27, "share of the run in which it rises; the authors: 40 of 150 thousand steps", ge=0.0, le=1.0
        )
        decay: float = setting(0.97, "a of the teacher's moving average", ge=0.0, lt=1.0, search=(0.9, 0.999))

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        self.teacher = EMA(self.student, decay=cfg.decay)

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(weak=2)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, logits = self.cfg, self.student(batch.weak(0))
        task = gce(logits, batch.y, cfg.q.at(t)).mean()
        weight = cfg.weight.at(t) * risen(t, cfg.ramp)
        target = probabilities(self.teacher(batch.weak(1)))
        agreement = ensemble_consistency(target, [probabilities(logits)]).mean()
        return {"loss": task + weight * agreement, "task": task, "consistency": agreement, "weight": weight}

    def after_step(self, t: Progress) -> None:
        self.teacher.update(self.student, decay=mean_at_first(self.cfg.decay, t.step))

    def cost(self, t: Progress) -> float:
        return 4.0  # the teacher only looks

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {"student": self.student}
