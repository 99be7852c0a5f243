"""Forward correction (Patrini 2017): the network predicts true classes, the noise matrix turns them into labels.

L = -log sum_a p_a T[a, y]            T[a, b] = P(given b | true a)

Where T is not known, a first network learns the given labels by cross-entropy until `estimate`; then

    T[a, :] = its prediction for the anchor of class a: the training example at a high percentile of p_a

and a fresh network learns with T, by schedules that begin anew.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rte.methods.base import Clock, Method, Progress, Sweep, Task, Terms
from rte.parts.losses import probabilities
from rte.parts.schedules import within
from rte.parts.transition import anchor_matrix, believed, known_matrix, log_likelihood, log_matrix
from rte.settings import Settings, setting
from rte.views.batch import Batch

FEW = 20
"""Of more classes than this, the most certain example is the anchor: whole classes could lie beyond a percentile."""
PERCENTILE = 97.0


class Forward(Method):
    """Cross-entropy of the noisy label under a noise matrix."""

    summary = "forward correction: the likelihood of the given labels under a noise matrix, estimated or known"
    paper = "Patrini et al., 2017"
    needs = ("matrix",)

    class Config(Settings):
        matrix: str | None = setting(
            None, "the noise matrix: symmetric:0.4, pair:0.45, matrix:FILE ...; none: estimated"
        )
        estimate: float = setting(
            0.5, "share of the run after which it is estimated; the authors: as long as the rest", gt=0.0, lt=1.0
        )
        percentile: float | None = setting(
            None,
            "of p_a, where the anchor is; none: 97, or 100 with many classes",
            gt=0,
            le=100,
        )

    cfg: Config
    T: Tensor
    began: Tensor
    epoch: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.build = task.build
        self.net = task.build(0)
        known = cfg.matrix is not None and not task.loading
        self.register_buffer("T", known_matrix(cfg.matrix or "", task.classes) if known else torch.eye(task.classes))
        self.register_buffer("began", torch.tensor(0.0))  # the second network, as a share of the run
        self.register_buffer("epoch", torch.tensor(0))  # its first

    @property
    def second(self) -> bool:
        """Whether the matrix has been estimated."""
        return int(self.epoch) > 0

    def clock(self, t: Progress) -> Clock:
        if self.cfg.matrix is not None:
            return Clock(t)
        if not self.second:
            return Clock(within(t, 0.0, self.cfg.estimate))
        return Clock(within(t, float(self.began), 1.0, epoch=int(self.epoch)))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if self.cfg.matrix is not None or self.second or t.epoch == 0 or t.fraction < self.cfg.estimate - 1e-9:
            return {}
        usual = PERCENTILE if self.classes <= FEW else 100.0
        percentile = usual if self.cfg.percentile is None else self.cfg.percentile
        self.T.copy_(anchor_matrix(probabilities(sweep(self.net)), percentile))
        self.net.load_state_dict(self.build(1).state_dict())
        self.began.fill_(t.fraction)
        self.epoch.fill_(t.epoch)
        return {"diagonal": float(self.T.diagonal().mean())}

    def restarted(self, t: Progress) -> list[nn.Parameter]:
        return list(self.net.parameters()) if self.second and int(self.epoch) == t.epoch else []

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return {"loss": -log_likelihood(self.net(batch.x), batch.y, log_matrix(self.T)).mean()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The probability that the given label is right, by network and matrix; before there is one, as ever."""
        if not self.second and self.cfg.matrix is None:
            return super().trust(sweep)
        return believed(sweep(self.net), self.y, log_matrix(self.T))
