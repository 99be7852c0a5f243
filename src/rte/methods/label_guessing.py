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
from rte.parts.losses import gce, probabilities
from rte.parts.objective import ObjectiveSettings, objective
from rte.settings import setting
from rte.views.batch import Batch, ViewPlan


class LabelGuessing(Method):
    """Targets from the mean over the views themselves."""

    summary = "label guessing: GCE + JSD + consistency with the sharpened mean over K strong views (MixMatch's target)"
    paper = "Berthelot et al., 2019"

    class Config(ObjectiveSettings):
        temperature: float = setting(0.5, "T: the guess is mean^(1/T), normalised", gt=0.0, le=1.0)

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(strong=max(self.cfg.n_star(t), self.cfg.pair(t)))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, q = self.cfg, self.cfg.q.at(t)
        f_x, *f_aug = self.net(batch.views).split(len(batch))  # one batch: shared batch-norm statistics
        p_aug = [probabilities(f) for f in f_aug]
        views = p_aug[: cfg.n_star(t)]
        terms = objective(
            gce(f_x, batch.y, q),
            p_orig=probabilities(f_x.detach()),
            pair=p_aug[: cfg.pair(t)],
            target=torch.stack(views).detach().mean(0) if views else None,
            views=views,
            temperature=cfg.temperature,
            jsd_weight=cfg.jsd_weight.at(t),
            ecr_weight=cfg.ecr_weight.at(t),
        )
        return {**terms, "q": q}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
