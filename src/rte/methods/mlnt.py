"""MLNT (Li 2019): meta-learning to be tolerant of label noise, by trying out what synthetic noise would do.

L = CE(f_theta(x), y) + eta(t) * 1/M sum_m KL_m,        KL_m = 1/(K B) sum_b KL(p'(x_b) || softmax f_{theta_m}(x_b))

theta_m = theta - alpha grad_theta CE(f_theta(x), y_m)      one step on synthetic labels, differentiated through
y_m     y, where a random share rho of the batch takes the label of one of its nearest neighbours in the batch
p'      softmax of the teacher, a moving average of the weights; no gradient
eta(t)  eta * exp(-5 (1 - u)^2), u the share of the ramp that lies behind

After a step on wrong labels the network should still predict what the teacher predicts, so it learns weights that a
step on noise does not spoil. Neighbours are near in the teacher's features: their labels are mistakes that people make.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import functional_call

from rte.errors import ConfigError
from rte.methods.base import Method, Predict, Progress, Sweep, Task, Terms
from rte.parts.ema import EMA, mean_at_first
from rte.parts.losses import cross_entropy, entropy, probabilities, soft_cross_entropy
from rte.parts.neighbours import borrow, nearest
from rte.parts.schedules import Schedule, constant, risen
from rte.settings import Settings, setting
from rte.views.batch import Batch


class NoiseTolerant(Method):
    """Cross-entropy, and agreement with a teacher after virtual steps on synthetic noise."""

    summary = "MLNT: stays near its teacher's predictions even after a virtual step on synthetic noise"
    paper = "Li et al., 2019"

    class Config(Settings):
        warmup: float = setting(
            0.025, "share of the run with cross-entropy alone; the authors: 3 of 120 epochs", ge=0.0, le=1.0
        )
        sets: int = setting(10, "M, synthetic sets of labels per step", ge=1, search=[1, 2, 5, 10])
        share: float = setting(0.5, "rho, share of a batch whose labels are changed", ge=0.0, le=1.0, search=(0, 1))
        neighbours: int = setting(10, "among how many nearest examples of the batch a label is taken", ge=1)
        step_size: float = setting(0.2, "alpha, the rate of the virtual step", gt=0.0, search=(0.02, 0.5))
        weight: Schedule = setting(constant(0.4), "eta of the agreement, after its ramp", search=(0, 4), ge=0)
        ramp: float = setting(
            0.17, "share of the run in which that weight rises; the authors: 20 of 120 epochs", ge=0.0, le=1.0
        )
        decay: float = setting(0.99, "of the teacher's moving average", ge=0.0, lt=1.0, search=(0.9, 0.999))

    cfg: Config
    meta: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.student = task.build()
        if getattr(self.student, "_compiled_call_impl", None) is not None:
            raise ConfigError("mlnt differentiates through a step, which compiled networks cannot; drop train.compile.")
        self.teacher = EMA(self.student, decay=cfg.decay)
        self.register_buffer("meta", torch.tensor(False))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        self.meta.fill_(t.epoch > 0 and t.fraction >= self.cfg.warmup)
        return {}

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, logits = self.cfg, self.student(batch.x)
        task = cross_entropy(logits, batch.y).mean()
        weight = cfg.weight.at(t) * risen(t, cfg.ramp)
        if not self.meta or not weight:
            return {"loss": task, "task": task}
        features, target = self._teach(batch.x)
        near = nearest(features, cfg.neighbours)
        bound = entropy(target).mean()
        agreement = torch.zeros((), device=logits.device)
        for _ in range(cfg.sets):
            after = self._after_step_on(borrow(batch.y, near, cfg.share), logits, batch.x)
            agreement = agreement + (soft_cross_entropy(after, target).mean() - bound) / self.classes
        agreement = agreement / cfg.sets
        return {"loss": task + weight * agreement, "task": task, "agreement": agreement, "weight": weight}

    @torch.no_grad()
    def _teach(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The teacher's features (B, D) and probabilities (B, K); of a network without features, its logits serve."""
        net = self.teacher.module
        both = getattr(net, "with_features", None)
        features, logits = [net(x)] * 2 if both is None else both(x)
        return features.float(), probabilities(logits)

    def _after_step_on(self, y: Tensor, logits: Tensor, x: Tensor) -> Tensor:
        """What the student would predict (B, K) after one step on labels y; the step itself is differentiated too."""
        weights = dict(self.student.named_parameters())
        loss = cross_entropy(logits, y).mean()
        with torch.autocast(x.device.type, enabled=False):  # a step is made in single precision
            slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True, materialize_grads=True)
        fast = {name: w - self.cfg.step_size * g for (name, w), g in zip(weights.items(), slopes, strict=True)}
        means = {name: buffer.clone() for name, buffer in self.student.named_buffers()}  # of no real weights
        found: Tensor = functional_call(self.student, {**fast, **means}, (x,))
        return found

    def after_step(self, t: Progress) -> None:
        self.teacher.update(self.student, decay=mean_at_first(self.cfg.decay, t.step))

    def cost(self, t: Progress) -> float:
        return 4.0 + 8.0 * self.cfg.sets if self.meta else 3.0  # per set: a gradient, a forward pass, both backward

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.teacher(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {"student": self.student}
