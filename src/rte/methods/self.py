"""SELF (Nguyen 2020): labels that contradict an ensemble of predictions are filtered out, the examples are kept.

L = 1/B sum_{b kept} CE(f(x_b), y_b) + w(t) * 1/(K B) sum_b || p(x_b) - p'(x'_b) ||^2

f, f'    the student and its teacher, a moving average of the weights; p, p' their softmaxes
x, x'    two weak views of the same example             w(t)   weight * exp(-5 (1 - u)^2) during its ramp
z_i      <- a z_i + (1 - a) p'_i, once per epoch, on example i without augmentation
kept     every label before the first filter; then, until the next one, {i : argmax z_i = y_i}

Two ensembles, then: of weights, and of predictions over epochs. Filtering always begins with all given labels, so one
that was dropped may come back. Examples without a label go on to teach by consistency.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Sweep, Task, Terms
from rte.parts.ema import EMA, mean_at_first
from rte.parts.losses import cross_entropy, ensemble_consistency, probabilities
from rte.parts.schedules import Schedule, constant, risen
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan


class SelfEnsembleFiltering(Method):
    """A mean teacher whose labels are filtered by the average of its predictions."""

    summary = "SELF: a mean teacher, and labels filtered by a running average of its predictions"
    paper = "Nguyen et al., 2020"

    class Config(Settings):
        warmup: float = setting(
            0.25, "share of the run before the first filter; the authors ask validation", ge=0.0, le=1.0
        )
        every: float = setting(0.1, "share of the run between filters; 0: each epoch", ge=0.0, le=1.0)
        memory: float = setting(0.9, "a of the running average of predictions", ge=0.0, lt=1.0, search=(0.5, 0.95))
        weight: Schedule = setting(constant(100.0), "of the consistency, after its ramp", search=(0, 200), ge=0)
        ramp: float = setting(0.1, "share of the run in which that weight rises; the authors: 5 epochs", ge=0.0, le=1.0)
        decay: float = setting(0.97, "of the teacher's moving average", ge=0.0, lt=1.0, search=(0.9, 0.999))

    cfg: Config
    ensemble: Tensor
    kept: Tensor
    filtered: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        self.teacher = EMA(self.student, decay=cfg.decay)
        self.register_buffer("ensemble", torch.zeros(len(task.y), task.classes))
        self.register_buffer("kept", torch.ones(len(task.y), dtype=torch.bool))
        self.register_buffer("filtered", torch.tensor(-1.0))  # when, as a share of the run

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(weak=2)

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if t.epoch == 0:
            return {}
        a = self.cfg.memory
        self.ensemble = a * self.ensemble + (1 - a) * probabilities(sweep(self.teacher))
        last = float(self.filtered)
        if t.fraction >= self.cfg.warmup and (last < 0 or t.fraction >= last + self.cfg.every - 1e-6):
            self.kept = self.ensemble.argmax(1) == self.y
            self.filtered.fill_(t.fraction)
        return {"kept": self.kept.float().mean()}

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, logits = self.cfg, self.student(batch.weak(0))
        task = (self.kept[batch.i] * cross_entropy(logits, batch.y)).mean()
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

    def trust(self, sweep: Sweep) -> Tensor:
        """The given label's share of the average of predictions; before there is one, the predicted probability."""
        if not bool(self.ensemble.any()):
            return super().trust(sweep)
        return (self.ensemble / self.ensemble.sum(1, keepdim=True)).gather(1, self.y[:, None]).squeeze(1)
