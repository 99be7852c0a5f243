"""Augmentation anchoring (ReMixMatch, Berthelot 2020) in the place of RTE's consistency term; one of its ablations.

L = L_q + lambda_JSD * JSD + lambda * 1/(|Y| K) sum_i || a(x) - p(y|A_i(x)) ||^2

a(x) = sharpen_T(p(y|x))                    the anchor: one prediction on the weak view for K strong ones, no gradient
p      softmax of the student               x       the weak view (random crop and flip)
y      the given, perhaps wrong, label      A(x)    a strong view of that same x, drawn afresh each time

With `ema`, a moving average of the student predicts on x and is reported; without, the student itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import ensemble_consistency, gce, jensen_shannon, sharpen
from rte.parts.schedules import Schedule, Sine, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch, Plan


class AugmentationAnchoring(Method):
    """Targets from the sharpened prediction on the weak view."""

    summary = "augmentation anchoring: GCE + JSD + consistency with the sharpened prediction on x (ReMixMatch's target)"

    class Config(Settings):
        q: Schedule = setting(Sine(scale=0.6), "q of L_q: 0 is cross-entropy, 1 is mean absolute error", search=(0, 1))
        jsd_weight: Schedule = setting(constant(12.0), "lambda_JSD", search=(0, 20))
        anchor_weight: Schedule = setting(constant(1.0), "lambda of the consistency with the anchor", search=(0, 5))
        views: Schedule = setting(constant(2), "K: strong views per example", search=[2, 3, 4, 5, 6])
        temperature: float = setting(0.5, "T: the anchor is p^(1/T), normalised", gt=0.0, le=1.0)
        ema: bool = setting(False, "anchors and predictions by a moving average; false: by the student itself")
        decay: float = setting(0.99, "alpha of that moving average", ge=0.0, lt=1.0)
        warmup: bool = setting(False, "let it follow faster at first: min(alpha, (1 + k) / (10 + k))")

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        self.teacher = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup) if cfg.ema else None

    def k(self, t: Progress) -> int:
        """K, or 0 where the term it belongs to is switched off."""
        return round(self.cfg.views.at(t)) if self.cfg.anchor_weight.at(t) else 0

    def views(self, t: Progress) -> Plan:
        return Plan(strong=max(self.k(t), 2 if self.cfg.jsd_weight.at(t) else 0))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, q = self.cfg, self.cfg.q.at(t)
        f_x, *f_aug = self.student(batch.views).split(len(batch))  # one batch: shared batch-norm statistics

        loss = task = gce(f_x, batch.y, q).mean()
        terms: Terms = {"task": task, "q": q}
        if not f_aug:
            return {"loss": loss, **terms}

        f_orig = f_x.detach() if self.teacher is None else self.teacher(batch.x)
        p_orig = f_orig.softmax(1, dtype=torch.float32)
        p_aug = [f.softmax(1, dtype=torch.float32) for f in f_aug]
        if jsd_weight := cfg.jsd_weight.at(t):
            terms["jsd"] = jsd = jensen_shannon([p_orig, p_aug[0], p_aug[1]]).mean()
            loss = loss + jsd_weight * jsd

        if k := self.k(t):
            anchor = sharpen(p_orig, cfg.temperature)
            terms["anchor"] = consistency = ensemble_consistency(anchor, p_aug[:k]).mean()
            loss = loss + cfg.anchor_weight.at(t) * consistency
        return {"loss": loss, **terms}

    def after_step(self, t: Progress) -> None:
        if self.teacher is not None:
            self.teacher.update(self.student)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.student(x) if self.teacher is None else self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {} if self.teacher is None else {"student": self.student}
