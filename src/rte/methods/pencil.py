"""PENCIL (Yi & Wu 2019): every example has a distribution over the labels, which is trained along with the network.

y~_i      the logits of example i's label, a row of a table that starts at 10 * one-hot(y_i);     d_i = softmax(y~_i)

phase 1   L = CE(f, y)
phase 2   L = Lc + alpha Lo + beta Le        and        y~_i <- y~_i - lambda / 128 * dL_i / dy~_i
phase 3   L = Lc                             the labels stay as they are

Lc        1/K sum_k p_k log(p_k / d_k)       the prediction p = softmax f has to agree with the label
Lo        CE(d, y), d taken as logits        the label does not go far from the given one
Le        -1/K sum_k p_k log p_k             the prediction is sure

As in the authors' code, Lc and Le are means over the classes and Lo takes the softmax of d once more; alpha, beta and
lambda go with that. L_i is example i's own loss: their lambda acts on the mean over batches of 128.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy, entropy, probabilities, soft_cross_entropy
from rte.parts.schedules import Schedule, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch

PLAIN, MOVING, FIXED = range(3)
START = 10.0
"""The given label's logit at first."""
BATCH, EPOCHS = 128, 130
"""For which batch size, and for how many epochs of the second phase, the authors' lambda is meant."""


class Pencil(Method):
    """Labels as parameters, moved by the gradient of the loss."""

    summary = "PENCIL: label distributions that are trained together with the network, in three phases"
    paper = "Yi & Wu, 2019"
    tables = ("labels",)

    class Config(Settings):
        plain: float = setting(
            0.22, "share of the run with given labels alone; the authors: 70 of 320 epochs", ge=0.0, le=1.0
        )
        moving: float = setting(
            0.41, "share of the run in which labels are trained; the authors: 130 of 320", ge=0.0, le=1.0
        )
        alpha: float = setting(0.4, "of Lo, which keeps labels near the given ones", ge=0.0, search=(0, 1))
        beta: float = setting(0.1, "of Le, which makes predictions sure", ge=0.0, search=(0, 1))
        rate: Schedule = setting(constant(600.0), "lambda, how fast labels move", search=(100, 10000), ge=0)

    cfg: Config
    labels: Tensor
    phase: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.register_buffer("labels", START * F.one_hot(task.y, task.classes).float())
        self.register_buffer("phase", torch.tensor(PLAIN))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if t.epoch > 0 and t.fraction >= self.cfg.plain:
            self.phase.fill_(MOVING if t.fraction < self.cfg.plain + self.cfg.moving else FIXED)
        corrected = self.labels.argmax(1) != self.y
        return {"phase": float(self.phase), "corrected": float(corrected.float().mean())}

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits, phase = self.net(batch.x), int(self.phase)
        if phase == PLAIN:
            task = cross_entropy(logits, batch.y).mean()
            return {"loss": task, "task": task}
        rows = self.labels[batch.i].requires_grad_(phase == MOVING)
        p, k = probabilities(logits), self.classes
        unsure = entropy(p) / k
        agreement = soft_cross_entropy(rows, p) / k - unsure
        if phase == FIXED:
            return {"loss": agreement.mean(), "agreement": agreement.mean()}
        near = cross_entropy(rows.softmax(1), batch.y)
        each = agreement + self.cfg.alpha * near + self.cfg.beta * unsure
        (slope,) = torch.autograd.grad(each.sum(), rows, retain_graph=True)
        self.labels[batch.i] = rows.detach() - self.speed(t) * slope
        parts = {"agreement": agreement, "near": near, "unsure": unsure}
        return {"loss": each.mean(), **{name: part.mean() for name, part in parts.items()}}

    def speed(self, t: Progress) -> float:
        """What an example's gradient is multiplied by; longer steps where there are fewer of them than 130."""
        return self.cfg.rate.at(t) / BATCH * EPOCHS / max(self.cfg.moving * t.epochs, 1.0)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The given label's share of its example's distribution."""
        return self.labels.softmax(1).gather(1, self.y[:, None]).squeeze(1)
