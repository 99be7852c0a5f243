"""Self-tuning: picks what suits the noise it estimates and the length of the run.

The rules are one pure function, `rte.recipes.policy.choose`. Here is only what they act on:

L = task + lambda (JSD + ...)    RTE's objective, with one strong view A(x) that carries all of its terms
task    L_q, or where the policy says so -log((1 - noise) p_y + noise / (K - 1) (1 - p_y)), the labels' likelihood
lambda  of clean labels, times what the noise leaves of the labels' signal
taught  later stages: cross-entropy with the targets of the network before, on strong views, mixed

With `folds`, for vectors, several networks are cross-fitted instead: `rte.recipes.crossfit`.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from rte.methods.base import Clock, Group, Method, Pass, Predict, Progress, Sweep, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import forward_corrected, forward_gradient, gce, probabilities, soft_cross_entropy
from rte.parts.mixing import mixup
from rte.parts.objective import objective
from rte.parts.schedules import Moment
from rte.recipes.crossfit import CrossFit, SideBySide
from rte.recipes.policy import MOST, STRENGTHS
from rte.recipes.sampling import ImportanceSampling
from rte.recipes.tuner import Tuner
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan

MIXING = 1.0
"""alpha of mixup while a network is taught."""


class SelfTuning(Method):
    """RTE's terms, the likelihood of labels, importance sampling and self-distillation, each where it pays."""

    summary = "self-tuning: picks what suits the noise it estimates and the length of the run"
    paper = "ours"

    class Config(Settings):
        q: float = setting(0.7, "q of L_q before the noise is known", ge=0.0, le=1.0)
        jsd_weight: float = setting(2.0, "lambda_JSD for clean labels, where views pay", ge=0.0)
        ecr_weight: float = setting(4.0, "lambda_ECR for clean labels, where views pay", ge=0.0)
        decay: float = setting(0.95, "alpha of the teacher's moving average", ge=0.0, lt=1.0)
        warmup: bool = setting(True, "let the teacher follow faster at first: min(alpha, (1 + k) / (10 + k))")
        likelihood: bool = setting(True, "short runs: likelihood of the labels, or half of q if noise is not even")
        sampling: float = setting(
            0.5, "with the likelihood: share of examples in a pass, drawn by importance; 1: all", gt=0.0, le=1.0
        )
        folds: int = setting(1, "parts of the examples, each left out by one of as many networks; 1: one network", ge=1)
        stages: int = setting(0, "networks that follow one another at most; 0: as many as suit the run", ge=0, le=MOST)

    cfg: Config
    tables = ("sampling.gradient",)

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.build = task.build
        self.crossfit = CrossFit(len(task.y), task.classes, cfg.folds) if cfg.folds > 1 else None
        self.student = SideBySide(task.build, cfg.folds, STRENGTHS) if cfg.folds > 1 else task.build(0)
        self.teacher = EMA(self.student, decay=cfg.decay, warmup=cfg.warmup)
        self.tuner = Tuner(len(task.y), task.classes, most=cfg.stages, eager=cfg.likelihood)
        self.sampling = ImportanceSampling(len(task.y), cfg.sampling)

    def clock(self, t: Progress) -> Clock:
        if self.crossfit is not None:
            return Clock(t)
        m = self.tuner.moment(t)
        choice = self.tuner.now(m)
        return Clock(m, choice.taught_rate if self.tuner.stages.teaching else choice.rate)

    def views(self, t: Progress) -> ViewPlan:
        if self.crossfit is not None:
            return ViewPlan()
        return ViewPlan(strong=int(self.tuner.stages.teaching or self.tuner.consistency(self.tuner.moment(t)) > 0))

    def groups(self) -> Sequence[Group]:
        if isinstance(self.student, SideBySide):
            return [Group(parameters, decay=decay) for parameters, decay in self.student.decayed()]
        return super().groups()

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if self.crossfit is not None:
            return {**self.crossfit.look(t.fraction, self.student, self.teacher, sweep, self.y)}
        stages, report = self.tuner.stages, Terms(self.tuner.settle(t, t.step))
        if stages.due(t):
            report |= {"network": stages.network, "taught": stages.teaching}
            if stages.teaching:
                stages.teach(probabilities(sweep(self.predict, reported=True)).cpu(), self.y.cpu())
                self.student.load_state_dict(self.build(stages.network).state_dict())
                self.teacher.restart(self.student)
        m = self.tuner.moment(t)
        self.sampling.open(m.fraction, wanted=self.tuner.now(m).sampling and not self.views(t).strong)
        return report

    def passes(self, t: Progress) -> Sequence[Pass]:
        return [Pass(index=index) for index in self.sampling.passes()]

    def epoch_end(self, t: Progress, sweep: Sweep) -> Terms:
        return {} if self.crossfit is None else {**self.crossfit.calibrate(self.teacher, sweep, self.y)}

    def loss(self, batch: Batch, t: Progress) -> Terms:
        if self.crossfit is not None:
            return {"loss": self.crossfit.loss(self.student(batch.x), batch.i, batch.y)}
        if self.tuner.stages.teaching:
            return self._taught(batch)
        cfg, m = self.cfg, self.tuner.moment(t)
        q, left = self.tuner.now(m).q, self.tuner.consistency(m)
        strong = batch.plan.strong > 0
        f = self.student(batch.views[len(batch) * strong :])  # where there is a strong view, the teacher alone sees x
        task, terms = self._task(f, batch, m, cfg.q if q is None else q)
        p, target = ([probabilities(f)], probabilities(self.teacher(batch.x))) if strong else ([], None)
        weights = {"jsd_weight": left * cfg.jsd_weight, "ecr_weight": left * cfg.ecr_weight, "temperature": 1.0}
        return {**objective(task, p_orig=target, pair=p, target=target, views=p, **weights), **terms}

    def _task(self, f: Tensor, batch: Batch, m: Moment, q: float) -> tuple[Tensor, Terms]:
        """The loss of the labels (B,), and what is journalled of it; the estimate of the noise sees the batch first."""
        drawn = self.sampling.begun  # examples drawn by importance are no sample of the labels
        noise = self.tuner.noise.rate if drawn else self.tuner.look(f.detach(), batch.y, m)
        if not self.tuner.now(m).likelihood:
            return gce(f, batch.y, q), {"noise": noise, "q": q}
        self.sampling.remember(batch.i, forward_gradient(f.detach(), batch.y, noise))
        return forward_corrected(f, batch.y, noise), {"noise": noise}

    def _taught(self, batch: Batch) -> Terms:
        mixed = mixup(batch.strong(0), self.tuner.stages.targets[batch.i], alpha=MIXING, dominant=True)
        task = soft_cross_entropy(self.student(mixed.x), mixed.targets).mean()
        return {"loss": task, "task": task, "network": self.tuner.stages.network}

    def after_step(self, t: Progress) -> None:
        self.teacher.update(self.student)

    def cost(self, t: Progress) -> float:
        if self.crossfit is not None:
            return 3.0 * self.cfg.folds * (1 if self.crossfit.settled else len(STRENGTHS))
        return 3.0 + (self.views(t).strong > 0 and not self.tuner.stages.teaching)

    def predict(self, x: Tensor) -> Tensor:
        return self._reported(self.teacher(x))

    def networks(self) -> dict[str, Predict]:
        return {"student": lambda x: self._reported(self.student(x))}

    def trust(self, sweep: Sweep) -> Tensor:
        return super().trust(sweep) if self.crossfit is None else self.crossfit.trust(self.teacher, sweep, self.y)

    def _reported(self, logits: Tensor) -> Tensor:
        return logits if self.crossfit is None else self.crossfit.mean(logits)
