"""Label guessing (MixMatch, Berthelot 2019) in the place of RTE's consistency term; one of its ablations.

L = L_q + lambda_JSD * JSD + lambda * 1/(|Y| K) sum_i || g(x) - p(y|A_i(x)) ||^2

g(x) = sharpen_T(1/K sum_i p(y|A_i(x)))     the guess: the student's own mean over its K strong views, no gradient
p      softmax of the student               x       the weak view (random crop and flip)
y      the given, perhaps wrong, label      A(x)    a strong view of that same x, drawn afresh each time

There is no teacher: the student guesses, learns and is reported.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import ensemble_consistency, gce, jensen_shannon, sharpen
from rte.parts.schedules import Schedule, Sine, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch, Plan


class LabelGuessing(Method):
    """Targets from the mean over the views themselves."""

    summary = "label guessing: GCE + JSD + consistency with the sharpened mean over K strong views (MixMatch's target)"

    class Config(Settings):
        q: Schedule = setting(Sine(scale=0.6), "q of L_q: 0 is cross-entropy, 1 is mean absolute error", search=(0, 1))
        jsd_weight: Schedule = setting(constant(12.0), "lambda_JSD", search=(0, 20))
        guess_weight: Schedule = setting(constant(1.0), "lambda of the consistency with the guess", search=(0, 5))
        views: Schedule = setting(constant(2), "K: strong views per example", search=[2, 3, 4, 5, 6])
        temperature: float = setting(0.5, "T: the guess is mean^(1/T), normalised", gt=0.0, le=1.0)

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def k(self, t: Progress) -> int:
        """K, or 0 where the term it belongs to is switched off."""
        return round(self.cfg.views.at(t)) if self.cfg.guess_weight.at(t) else 0

    def views(self, t: Progress) -> Plan:
        return Plan(strong=max(self.k(t), 2 if self.cfg.jsd_weight.at(t) else 0))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, q = self.cfg, self.cfg.q.at(t)
        f_x, *f_aug = self.net(batch.views).split(len(batch))  # one batch: shared batch-norm statistics
        p_aug = [f.softmax(1, dtype=torch.float32) for f in f_aug]

        loss = task = gce(f_x, batch.y, q).mean()
        terms: Terms = {"task": task, "q": q}

        if jsd_weight := cfg.jsd_weight.at(t):  # as in RTE, p_orig carries no gradient
            p_orig = f_x.detach().softmax(1)
            terms["jsd"] = jsd = jensen_shannon([p_orig, p_aug[0], p_aug[1]]).mean()
            loss = loss + jsd_weight * jsd

        if k := self.k(t):
            guess = sharpen(torch.stack(p_aug[:k]).detach().mean(0), cfg.temperature)
            terms["guess"] = consistency = ensemble_consistency(guess, p_aug[:k]).mean()
            loss = loss + cfg.guess_weight.at(t) * consistency
        return {"loss": loss, **terms}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
