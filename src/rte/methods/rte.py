"""Robust temporal ensembling: a robust task loss and two consistency terms against a moving-average teacher.

L_RTE = L_q + lambda_JSD * JSD + lambda_ECR * ECR                                             (eq. rteloss)

f      the student, p = softmax f           x       the weak view (random crop and flip)
f'     the teacher, p' = softmax f'         A(x)    a strong view: AugMix of that same x, drawn afresh each time
y      the given, perhaps wrong, label      N*      how many strong views
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from pydantic import model_validator
from torch import Tensor, nn

from rte.errors import ConfigError
from rte.methods.base import Method, Pass, Predict, Progress, Sweep, Task, Terms, Update
from rte.parts.balance import Balance
from rte.parts.ema import EMA
from rte.parts.generations import Generations
from rte.parts.losses import ensemble_consistency, jensen_shannon, sharpen
from rte.parts.members import assembled, each, take_turns
from rte.parts.schedules import Moment, Schedule, Sine, constant
from rte.parts.selftune import NoiseEstimate
from rte.parts.task import task_loss
from rte.parts.visits import Visits
from rte.settings import Settings, setting
from rte.views.batch import Batch, Plan


class RobustTemporalEnsembling(Method):
    """The paper's method; `ema`, `ecr_batch`, `temperature`, `jsd_pair` and weights of 0 are its ablations."""

    summary = "robust temporal ensembling: GCE + JSD + ensemble consistency against a moving-average teacher"

    class Config(Settings):
        auto: bool = setting(False, "set q, learning rate, lambdas and use of views by the noise the run estimates")
        q: Schedule = setting(Sine(scale=0.6), "q of L_q: 0 is cross-entropy, 1 is mean absolute error", search=(0, 1))
        jsd_weight: Schedule = setting(constant(12.0), "lambda_JSD", search=(0, 20))
        ecr_weight: Schedule = setting(constant(1.0), "lambda_ECR", search=(0, 5))
        views: Schedule = setting(constant(10), "N*: strong views per example", search=[3, 4, 5, 6, 7, 8, 9, 10])
        decay: float = setting(0.99, "alpha of the teacher's moving average", ge=0.0, lt=1.0)
        warmup: bool = setting(False, "let the teacher follow faster at first: min(alpha, (1 + k) / (10 + k))")
        chunk: int | None = setting(None, "strong views per forward pass, to save memory; none: all together", ge=2)
        ema: bool = setting(True, "targets and predictions by the teacher; false: by the student itself")
        ecr_batch: int | None = setting(None, "examples drawn for ECR alone; none: those of the task loss", ge=1)
        temperature: float = setting(1.0, "T: ECR's target is p'^(1/T), normalised", gt=0.0, le=1.0)
        jsd_pair: Literal["shared", "separate"] = setting("shared", "the first of the N* views, or some more")
        jsd_views: Literal[1, 2] = setting(2, "strong views that JSD compares with the teacher's")
        balance: bool = setting(False, "let the targets of JSD and ECR name each class as often as the labels do")
        members: int = setting(1, "networks that learn by turns, each from its share of the batches", ge=1)
        generations: int = setting(1, "networks in turn, each taught by the one before; 0: as many as auto finds", ge=0)
        task_loss: Literal["gce", "forward"] = setting(
            "gce", "L_q, or in short runs, with auto, the labels' likelihood (even noise) or a lower q"
        )
        visits: float = setting(1.0, "then the share of examples in a pass: those that pull most", gt=0.0, le=1.0)
        task_view: Literal["weak", "strong"] = setting("weak", "L_q is of x, or of its first strong view, if any")

        @model_validator(mode="after")
        def _makes_sense(self) -> RobustTemporalEnsembling.Config:
            if self.chunk and self.ecr_batch:
                raise ValueError("chunk cuts only the task's batch; with ecr_batch, save memory by train.accumulate")
            if self.task_view == "strong" and (self.chunk or not self.ema):
                raise ValueError("task_view = strong leaves the weak view to the teacher: it needs ema, and no chunk")
            return self

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        if cfg.ecr_batch is not None and cfg.ecr_batch > len(task.y):
            raise ConfigError(f"method.ecr_batch = {cfg.ecr_batch} exceeds the {len(task.y)} examples; set it lower.")
        build = assembled(task.build, cfg.members)
        self.student = build()
        self.teacher = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup) if cfg.ema else None
        self.noise = NoiseEstimate(task.classes, len(task.y)) if cfg.auto else None
        self.balance = Balance.of_labels(task.y, task.classes) if cfg.balance else None
        self.visits = Visits(len(task.y), cfg.visits) if cfg.visits < 1.0 else None
        self.tables = () if self.visits is None else ("visits.pull",)
        self.heirs = Generations(task.y, task.classes, build, most=cfg.generations, known=not cfg.auto)

    def moment(self, t: Progress) -> Moment:
        return each(self.heirs.moment(t), self.cfg.members)

    def q(self, t: Progress) -> float:
        """q of L_q: as set, or with `auto` the one that suits the noise."""
        m = self.moment(t)
        q, gently = self.cfg.q.at(m), self.cfg.task_loss == "forward"
        return q if self.noise is None else self.noise.q(m, q, gently=gently)

    def pace(self, t: Progress) -> float:
        return 1.0 if self.noise is None else self.noise.pace(self.moment(t), taught=self.heirs.taught)

    def felt(self, t: Progress) -> Moment:
        """t as the schedules of lambda and N* see it: with `auto`, in a longer run the more noise there is."""
        return self.moment(t) if self.noise is None else self.noise.felt(self.moment(t))

    def weights(self, t: Progress) -> tuple[float, float]:
        """lambda_JSD and lambda_ECR: as set, with `auto` times what suits the noise."""
        left, felt = 1.0 if self.noise is None else self.noise.hold(self.moment(t)), self.felt(t)
        return left * self.cfg.jsd_weight.at(felt), left * self.cfg.ecr_weight.at(felt)

    def n_star(self, t: Moment) -> int:
        """N*, or 0 where the term it belongs to is switched off."""
        return round(self.cfg.views.at(t)) if self.cfg.ecr_weight.at(t) else 0

    def views(self, t: Progress) -> Plan:
        return Plan(strong=1) if self.heirs.taught else self._plan(self.felt(t))

    def _plan(self, t: Moment) -> Plan:
        n, pair = self.n_star(t), self.cfg.jsd_views if self.cfg.jsd_weight.at(t) else 0
        if self.cfg.ecr_batch is not None:
            return Plan(strong=pair, second=Plan(strong=n))
        return Plan(strong=max(n, pair) if self.cfg.jsd_pair == "shared" else pair + n)

    def price(self, t: Progress) -> float:
        spared, planned = self.cfg.task_view == "strong", self._plan(each(t, self.cfg.members))
        return 1.0 if self.heirs.taught else max(1.0, self.views(t).passes(spared) / planned.passes(spared))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        settled = {} if self.noise is None else self.noise.settle(each(t, self.cfg.members), t.step)
        report: Terms = {**settled, **self.heirs.open(t, sweep, self, settled)}
        if self.visits is not None and self.noise is not None:
            wanted = self.cfg.task_loss == "forward" and self.noise.choosy(self.moment(t)) and not self.views(t).strong
            self.visits.open(t, wanted=wanted)
        return report

    def passes(self, t: Progress) -> Sequence[Pass]:
        everybody = None if self.cfg.ecr_batch is None or self.heirs.taught else torch.arange(len(self.y))
        parts = [None] if self.visits is None else self.visits.passes()
        return [Pass(index=part, second=everybody, second_batch=self.cfg.ecr_batch) for part in parts]

    def loss(self, batch: Batch, t: Progress) -> Terms:
        if self.heirs.taught:
            return self.heirs.loss(self.student, batch)
        cfg, own = self.cfg, batch.second  # own: ECR's batch, if not in sync with the task's
        f_x, f_aug, f_own = self._student(batch)
        jsd_weight, ecr_weight = self.weights(t)
        loss, terms = self._task(f_x, batch, t)
        if p_aug := [f.softmax(1) for f in f_aug]:
            p_teacher = self._target(batch.x, f_x)

        # JSD = (KL(p_orig || M) + KL(p_aug1 || M) + KL(p_aug2 || M)) / 3, p_orig from the teacher (eq. jsd)
        if jsd_weight:
            terms["jsd"] = jsd = jensen_shannon([p_teacher, *p_aug[: cfg.jsd_views]]).mean()
            loss = loss + jsd_weight * jsd

        # ECR = 1/(|Y| N*) sum_i || p'(y|x) - p(y|A_i(x)) ||^2                                     (eq. meanteacher)
        if n := self.n_star(self.felt(t)):
            if own is not None:
                p_teacher, p_aug = self._target(own.x, f_own[0]), [f.softmax(1) for f in f_own[-n:]]
            p_aug = p_aug[:n] if cfg.jsd_pair == "shared" else p_aug[-n:]
            terms["ecr"] = ecr = ensemble_consistency(sharpen(p_teacher, cfg.temperature), p_aug).mean()
            loss = loss + ecr_weight * ecr
        return {"loss": loss, **terms}

    def _task(self, f_x: Tensor, batch: Batch, t: Progress) -> tuple[Tensor, Terms]:
        """L_q = (1 - f_y(x)^q) / q (eq. gce), or what `task_loss` asks for, and what is journalled of it."""
        noise, visits, eager = self.noise, self.visits, self.cfg.task_loss == "forward"
        return task_loss(f_x, batch, self.moment(t), q=self.q(t), noise=noise, visits=visits, eager=eager)

    def _student(self, batch: Batch) -> tuple[Tensor, Sequence[Tensor], Sequence[Tensor]]:
        """f on what L_q sees, strong views, and ECR's own views; all as one batch, for shared batch-norm statistics."""
        own, spared = batch.second, self.cfg.task_view == "strong" and batch.plan.strong > 0
        rows = batch.views[len(batch) * spared :]
        b = len(rows)
        if own is not None:
            rows = torch.cat([rows, own.views if self.teacher is None else own.views[len(own) :]])
        f = self.student(rows)
        f_aug = f[:b].split(len(batch))
        return f_aug[0], f_aug if spared else f_aug[1:], [] if own is None else f[b:].split(len(own))

    def _target(self, x: Tensor, f_x: Tensor) -> Tensor:
        """p'(y|x), without gradient; where there is no teacher, the student's own. With `balance`, evened out."""
        f: Tensor = f_x.detach() if self.teacher is None else self.teacher(x)
        return f.softmax(1) if self.balance is None else self.balance(f.softmax(1))

    def step(self, batch: Batch, t: Progress, update: Update) -> Terms:
        """With `chunk`, x and every `chunk` strong views go forth and back by themselves, statistics of norms too."""
        take_turns(self.student, t.step)
        cfg, chunk, strong, b = self.cfg, self.cfg.chunk, batch.plan.strong, len(batch)
        if chunk is None or strong <= chunk:
            return super().step(batch, t, update)
        n, f_x = self.n_star(self.felt(t)), self.student(batch.x)
        first, (jsd_weight, ecr_weight) = 0 if cfg.jsd_pair == "shared" else strong - n, self.weights(t)
        (task, seen), p_teacher = self._task(f_x, batch, t), self._target(batch.x, f_x)
        terms: dict[str, float] = {"task": float(task.detach()), "jsd": 0.0, "ecr": 0.0}
        update(task, more=True)
        for start in range(0, strong, chunk):
            views = batch.views[b * (1 + start) : b * (1 + start + chunk)]
            p_aug, loss = [f.softmax(1) for f in self.student(views).split(b)], torch.zeros((), device=task.device)
            if start == 0 and jsd_weight:
                jsd = jensen_shannon([p_teacher, *p_aug[: cfg.jsd_views]]).mean()
                terms["jsd"], loss = float(jsd.detach()), loss + jsd_weight * jsd
            if mine := p_aug[max(0, first - start) : max(0, first + n - start)]:
                ecr = ensemble_consistency(sharpen(p_teacher, cfg.temperature), mine).mean() * (len(mine) / n)
                terms["ecr"], loss = terms["ecr"] + float(ecr.detach()), loss + ecr_weight * ecr
            update(loss, more=start + chunk < strong)
        total = terms["task"] + jsd_weight * terms["jsd"] + ecr_weight * terms["ecr"]
        return {"loss": total, **seen, **terms}

    def after_step(self, t: Progress) -> None:
        if self.teacher is not None:
            self.teacher.update(self.student)  # theta' <- alpha theta' + (1 - alpha) theta

    def running(self) -> Iterator[nn.Module]:
        yield from (*super().running(), *(part for part in (self.noise, self.balance) if part is not None))

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.student(x) if self.teacher is None else self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {} if self.teacher is None else {"student": self.student}
