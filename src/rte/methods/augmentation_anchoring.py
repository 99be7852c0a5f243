"""Augmentation anchoring (ReMixMatch, Berthelot 2020) in the place of RTE's consistency term; one of its ablations.

L = L_q + lambda_JSD * JSD + lambda * 1/(|Y| K) sum_i || a(x) - p(y|A_i(x)) ||^2

a(x) = sharpen_T(p(y|x))                    the anchor: one prediction on the weak view for K strong ones, no gradient
p      softmax of the student               x       the weak view (random crop and flip)
y      the given, perhaps wrong, label      A(x)    a strong view of that same x, drawn afresh each time

With `ema`, a moving average of the student predicts on x and is reported; without, the student itself.
"""

from __future__ import annotations

from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import gce, probabilities
from rte.parts.objective import ObjectiveSettings, objective
from rte.settings import setting
from rte.views.batch import Batch, ViewPlan


class AugmentationAnchoring(Method):
    """Targets from the sharpened prediction on the weak view."""

    summary = "augmentation anchoring: GCE + JSD + consistency with the sharpened prediction on x (ReMixMatch's target)"
    paper = "Berthelot et al., 2020"

    class Config(ObjectiveSettings):
        temperature: float = setting(0.5, "T: the anchor is p^(1/T), normalised", gt=0.0, le=1.0)
        ema: bool = setting(False, "anchors and predictions by a moving average; false: by the student itself")
        decay: float = setting(0.99, "alpha of that moving average", ge=0.0, lt=1.0)
        warmup: bool = setting(False, "let it follow faster at first: min(alpha, (1 + k) / (10 + k))")

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        self.teacher = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup) if cfg.ema else None

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(strong=max(self.cfg.n_star(t), self.cfg.pair(t)))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, q = self.cfg, self.cfg.q.at(t)
        f_x, *f_aug = self.student(batch.views).split(len(batch))  # one batch: shared batch-norm statistics
        anchor = None
        if f_aug:
            anchor = probabilities(f_x.detach() if self.teacher is None else self.teacher(batch.x))
        p_aug = [probabilities(f) for f in f_aug]
        terms = objective(
            gce(f_x, batch.y, q),
            p_orig=anchor,
            pair=p_aug[: cfg.pair(t)],
            target=anchor,
            views=p_aug[: cfg.n_star(t)],
            temperature=cfg.temperature,
            jsd_weight=cfg.jsd_weight.at(t),
            ecr_weight=cfg.ecr_weight.at(t),
        )
        return {**terms, "q": q}

    def after_step(self, t: Progress) -> None:
        if self.teacher is not None:
            self.teacher.update(self.student)

    def cost(self, t: Progress) -> float:
        return super().cost(t) + (self.teacher is not None and self.views(t).total > 1)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.student(x) if self.teacher is None else self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {} if self.teacher is None else {"student": self.student}
