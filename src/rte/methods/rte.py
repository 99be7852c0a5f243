"""Robust temporal ensembling: a robust task loss and two consistency terms against a moving-average teacher.

L_RTE = L_q + lambda_JSD * JSD + lambda_ECR * ECR                                             (eq. rteloss)

f      the student, p = softmax f           x       the weak view (random crop and flip)
f'     the teacher, p' = softmax f'         A(x)    a strong view: AugMix of that same x, drawn afresh each time
y      the given, perhaps wrong, label      N*      how many strong views
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms, Update
from rte.parts.ema import EMA
from rte.parts.losses import ensemble_consistency, gce, jensen_shannon
from rte.parts.schedules import Schedule, Sine, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch, Plan


class RobustTemporalEnsembling(Method):
    """The paper's method."""

    summary = "robust temporal ensembling: GCE + JSD + ensemble consistency against a moving-average teacher"

    class Config(Settings):
        q: Schedule = setting(
            Sine(scale=0.6), "q of the task loss: 0 is cross-entropy, 1 is mean absolute error", search=(0, 1)
        )
        jsd_weight: Schedule = setting(constant(12.0), "lambda_JSD", search=(0, 20))
        ecr_weight: Schedule = setting(constant(1.0), "lambda_ECR", search=(0, 5))
        views: Schedule = setting(constant(10), "N*: strong views per example", search=[3, 4, 5, 6, 7, 8, 9, 10])
        decay: float = setting(0.99, "alpha of the teacher's moving average", ge=0.0, lt=1.0)
        warmup: bool = setting(False, "let the teacher follow faster at first: min(alpha, (1 + k) / (10 + k))")
        chunk: int | None = setting(None, "strong views per forward pass, to save memory; none: all together", ge=2)

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        self.teacher = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup)

    def n_star(self, t: Progress) -> int:
        """N*, or 0 where the term it belongs to is switched off."""
        return round(self.cfg.views.at(t)) if self.cfg.ecr_weight.at(t) else 0

    def views(self, t: Progress) -> Plan:
        n = self.n_star(t)
        return Plan(weak=1, strong=max(n, 2) if self.cfg.jsd_weight.at(t) else n)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, q = self.cfg, self.cfg.q.at(t)
        f_x, *f_aug = self.student(batch.views).chunk(batch.plan.total)  # one batch: shared batch-norm statistics

        # L_q = (1 - f_y(x)^q) / q                                                                (eq. gce)
        loss = task = gce(f_x, batch.y, q).mean()
        terms: Terms = {"task": task, "q": q}
        if not f_aug:
            return {"loss": loss, **terms}

        p_teacher = self.teacher(batch.x).softmax(1)  # no gradient: a target
        p_aug = [f.softmax(1) for f in f_aug]

        # JSD = (KL(p_orig || M) + KL(p_aug1 || M) + KL(p_aug2 || M)) / 3, p_orig from the teacher (eq. jsd)
        if jsd_weight := cfg.jsd_weight.at(t):
            terms["jsd"] = jsd = jensen_shannon([p_teacher, p_aug[0], p_aug[1]]).mean()
            loss = loss + jsd_weight * jsd

        # ECR = 1/(|Y| N*) sum_i || p'(y|x) - p(y|A_i(x)) ||^2                                     (eq. meanteacher)
        if n := self.n_star(t):
            terms["ecr"] = ecr = ensemble_consistency(p_teacher, p_aug[:n]).mean()
            loss = loss + cfg.ecr_weight.at(t) * ecr
        return {"loss": loss, **terms}

    def step(self, batch: Batch, t: Progress, update: Update) -> Terms:
        if self.cfg.chunk is None or batch.plan.strong <= self.cfg.chunk:
            return super().step(batch, t, update)
        return self._step_in_parts(batch, t, update, self.cfg.chunk)

    def _step_in_parts(self, batch: Batch, t: Progress, update: Update, chunk: int) -> Terms:
        """The same objective with x and every `chunk` strong views as batches of their own, each with its own backward.

        Equal to `step` but for the statistics of batch norm, which are then those of each part.
        """
        n, strong, b = self.n_star(t), batch.plan.strong, len(batch)
        p_teacher = self.teacher(batch.x).softmax(1)
        task = gce(self.student(batch.x), batch.y, self.cfg.q.at(t)).mean()
        terms: dict[str, float] = {"task": float(task.detach()), "jsd": 0.0, "ecr": 0.0}
        update(task, more=True)
        for start in range(0, strong, chunk):
            views = batch.views[b * (1 + start) : b * (1 + start + chunk)]
            p_aug = [f.softmax(1) for f in self.student(views).split(b)]
            loss = torch.zeros((), device=task.device)
            if start == 0 and (jsd_weight := self.cfg.jsd_weight.at(t)):
                jsd = jensen_shannon([p_teacher, p_aug[0], p_aug[1]]).mean()
                terms["jsd"], loss = float(jsd.detach()), loss + jsd_weight * jsd
            if mine := p_aug[: max(0, n - start)]:
                ecr = ensemble_consistency(p_teacher, mine).mean() * (len(mine) / n)
                terms["ecr"], loss = terms["ecr"] + float(ecr.detach()), loss + self.cfg.ecr_weight.at(t) * ecr
            update(loss, more=start + chunk < strong)
        total = terms["task"] + self.cfg.jsd_weight.at(t) * terms["jsd"] + self.cfg.ecr_weight.at(t) * terms["ecr"]
        return {"loss": total, **terms, "q": self.cfg.q.at(t)}

    def after_step(self, t: Progress) -> None:
        self.teacher.update(self.student)  # theta' <- alpha theta' + (1 - alpha) theta

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {"student": self.student}
