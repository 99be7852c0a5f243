"""CleanNet (Lee 2018): each label counts as far as its image agrees with its class, learnt from trusted examples.

L = 1/B sum_b w_b CE(f(x_b), y_b)              w = 1 in the warm-up

soft    w_i = max(0, c_i)                      hard    w_i = [c_i >= rho]
c_i     cosine of image i's vector and its label's, from encoders that are fitted to the network's features and to the
        trusted examples (`rte.parts.verification`) after the warm-up, and again from time to time

Trusted examples have w = 1. The encoders are fitted anew each time and not kept: only w is.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from rte.errors import ConfigError
from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy
from rte.parts.verification import agreement
from rte.settings import Settings, setting
from rte.views.batch import Batch


class LabelVerification(Method):
    """Cross-entropy weighted by how well each image agrees with its label."""

    summary = "CleanNet: labels weighted by how their images agree with the class, learnt from trusted examples"
    paper = "Lee et al., 2018"
    needs = ("trusted examples",)

    class Config(Settings):
        weighting: Literal["soft", "hard"] = setting("soft", "soft: max(0, c); hard: 1 where c >= rho, else 0")
        threshold: float = setting(0.1, "rho of hard weights, and the margin of the fit", ge=0.0, lt=1.0)
        warmup: float = setting(
            0.3, "share of the run before the first fit; the authors: a whole training", ge=0.0, le=1.0
        )
        every: float = setting(0.2, "share of the run between fits; 0: each epoch", ge=0.0, le=1.0)
        steps: int = setting(1000, "gradient steps of a fit; the authors: 60 thousand", ge=1)
        rate: float = setting(0.01, "learning rate of the fit", gt=0.0)
        references: int = setting(32, "centroids that stand for a class", ge=1)

    cfg: Config
    weights: Tensor
    trusted: Tensor
    fitted: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        if len(task.trusted) < 2:
            raise ConfigError(
                f"cleannet learns from trusted examples, but got {len(task.trusted)}; set train.trusted to more."
            )
        self.net = task.build()
        self.register_buffer("trusted", task.trusted.clone(), persistent=False)
        self.register_buffer("weights", torch.ones(len(task.y)))
        self.register_buffer("fitted", torch.tensor(-1.0))  # when, as a share of the run

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        cfg, last = self.cfg, float(self.fitted)
        due = t.fraction >= (cfg.warmup if last < 0 else last + cfg.every - 1e-6)
        if t.epoch == 0 or not due:
            return {}
        z = sweep(getattr(self.net, "features", self.net))
        cosine = agreement(
            z,
            self.y,
            self.trusted,
            self.classes,
            references=cfg.references,
            steps=cfg.steps,
            rate=cfg.rate,
            margin=cfg.threshold,
        )
        self.weights = cosine.clamp(0, 1) if cfg.weighting == "soft" else (cosine >= cfg.threshold).to(cosine)
        self.weights[self.trusted] = 1.0
        self.fitted.fill_(t.fraction)
        return {"weight": self.weights.mean()}

    def loss(self, batch: Batch, t: Progress) -> Terms:
        w, each = self.weights[batch.i], cross_entropy(self.net(batch.x), batch.y)
        return {"loss": (w * each).mean(), "task": each.mean(), "weight": w.mean()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The weights; before the first fit, the predicted probability."""
        return super().trust(sweep) if float(self.fitted) < 0 else self.weights.clone()
