"""Robust temporal ensembling: a robust task loss and two consistency terms against a moving-average teacher.

L_RTE = L_q + lambda_JSD * JSD + lambda_ECR * ECR                                             (eq. rteloss)

L_q = (1 - f_y(x)^q) / q                                                                      (eq. gce)
JSD = (KL(p' || M) + KL(p_1 || M) + KL(p_2 || M)) / 3,    M = (p' + p_1 + p_2) / 3            (eq. jsd)
ECR = 1/(|Y| N*) sum_i || p' - p_i ||^2,    i = 1 .. N*                                       (eq. meanteacher)

f      the student, p = softmax f           x       the weak view (random crop and flip)
f'     the teacher, p' = softmax f'(x)      A_i(x)  strong views: AugMix of that same x, each drawn afresh
y      the given, perhaps wrong, label      p_i     softmax f(A_i(x))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from rte.errors import ConfigError
from rte.methods.base import Method, Pass, Predict, Progress, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import gce, probabilities
from rte.parts.objective import MOST_VIEWS, ObjectiveSettings, objective
from rte.parts.schedules import Schedule, constant
from rte.settings import setting
from rte.views.batch import Batch, ViewPlan


class RobustTemporalEnsembling(Method):
    """The paper's method; `ema`, `ecr_batch`, `temperature`, `jsd_pair` and weights of 0 are its ablations."""

    summary = "robust temporal ensembling: GCE + JSD + ensemble consistency against a moving-average teacher"
    paper = "Brown et al., 2021"

    class Config(ObjectiveSettings):
        views: Schedule = setting(
            constant(10), "N*: strong views per example", search=[3, 4, 5, 6, 7, 8, 9, 10], ge=0, le=MOST_VIEWS
        )
        decay: float = setting(0.99, "alpha of the teacher's moving average", ge=0.0, lt=1.0)
        warmup: bool = setting(False, "let the teacher follow faster at first: min(alpha, (1 + k) / (10 + k))")
        ema: bool = setting(True, "targets and predictions by the teacher; false: by the student itself")
        ecr_batch: int | None = setting(None, "examples drawn for ECR alone; none: those of the task loss", ge=1)
        temperature: float = setting(1.0, "T: the target of ECR is p'^(1/T), normalised", gt=0.0, le=1.0)
        jsd_pair: Literal["shared", "separate"] = setting("shared", "JSD on the first two of the N* views, or two more")

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        if cfg.ecr_batch is not None and cfg.ecr_batch > len(task.y):
            raise ConfigError(f"method.ecr_batch = {cfg.ecr_batch} exceeds the {len(task.y)} examples; set it lower.")
        self.student = task.build()
        self.teacher = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup) if cfg.ema else None

    def views(self, t: Progress) -> ViewPlan:
        n, pair = self.cfg.n_star(t), self.cfg.pair(t)
        if self.cfg.ecr_batch is not None:
            return ViewPlan(strong=pair, second=ViewPlan(strong=n))
        return ViewPlan(strong=max(n, pair) if self.cfg.jsd_pair == "shared" else pair + n)

    def passes(self, t: Progress) -> Sequence[Pass]:
        everybody = None if self.cfg.ecr_batch is None else torch.arange(len(self.y))
        return [Pass(second=everybody, second_batch=self.cfg.ecr_batch)]

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, own, q, n = self.cfg, batch.second, self.cfg.q.at(t), self.cfg.n_star(t)  # own: ECR's, if not in sync
        f_x, f_aug, f_own = self._student(batch)
        p_teacher = self._target(batch.x, f_x) if f_aug else None
        p_aug = [probabilities(f) for f in f_aug]
        target, views = p_teacher, p_aug[:n] if cfg.jsd_pair == "shared" else p_aug[-n:]
        if own is not None and n:
            target, views = self._target(own.x, f_own[0]), [probabilities(f) for f in f_own[-n:]]
        terms = objective(
            gce(f_x, batch.y, q),
            p_orig=p_teacher,
            pair=p_aug[: cfg.pair(t)],
            target=target,
            views=views,
            temperature=cfg.temperature,
            jsd_weight=cfg.jsd_weight.at(t),
            ecr_weight=cfg.ecr_weight.at(t),
        )
        return {**terms, "q": q}

    def _student(self, batch: Batch) -> tuple[Tensor, Sequence[Tensor], Sequence[Tensor]]:
        """f on x, on the strong views, and on ECR's own views: one batch, so that they share batch-norm statistics."""
        own, rows = batch.second, batch.views
        if own is not None:
            rows = torch.cat([rows, own.views if self.teacher is None else own.views[len(own) :]])
        f = self.student(rows)
        f_x, *f_aug = f[: len(batch.views)].split(len(batch))
        return f_x, f_aug, [] if own is None else f[len(batch.views) :].split(len(own))

    def _target(self, x: Tensor, f_x: Tensor) -> Tensor:
        """p'(y|x), without gradient; where there is no teacher, the student's own."""
        return probabilities(f_x.detach() if self.teacher is None else self.teacher(x))

    def after_step(self, t: Progress) -> None:
        if self.teacher is not None:
            self.teacher.update(self.student)  # theta' <- alpha theta' + (1 - alpha) theta

    def cost(self, t: Progress) -> float:
        return super().cost(t) + (self.teacher is not None and self.views(t).total > 1)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.student(x) if self.teacher is None else self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {} if self.teacher is None else {"student": self.student}
