"""S-model (Goldberger & Ben-Reuven 2017): a noise layer after the softmax, learnt with the network and then dropped.

p(given b | x) = sum_a p_a theta_ab            theta_ab = exp(b_ab) / sum_c exp(b_ac)
L = -log p(given y | x)

p       softmax of the network: what is reported
theta   the noise layer, a matrix whose rows sum to 1
b       its parameters (K, K)

Network and layer could exchange classes without any change of L; where b begins decides what p means. So the network
first learns the given labels by cross-entropy, and at `start` b is set to log(C + 1e-8): C_ab is the share of label b
among the training examples that are predicted as a.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rte.methods.base import Group, Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy, probabilities
from rte.parts.transition import believed, confusion_matrix, log_likelihood
from rte.settings import Settings, setting
from rte.views.batch import Batch

PRIOR = 0.46
"""Share of wrong labels that b begins with where nothing comes before it."""
SMALLEST = 1e-8


class SModel(Method):
    """A network and a matrix that turns its classes into the given labels."""

    summary = "S-model: a noise adaptation layer after the softmax, learnt with the network and dropped at the end"
    paper = "Goldberger & Ben-Reuven, 2017"

    class Config(Settings):
        start: float = setting(
            0.5, "share of the run before the layer is added; the authors: as long as the rest", ge=0.0, lt=1.0
        )
        soft: bool = setting(False, "begin from the mean predicted probabilities, not from the predicted classes")

    cfg: Config
    added: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        even = torch.full((task.classes, task.classes), math.log(PRIOR / (task.classes - 1)))
        self.layer = nn.Parameter(even.fill_diagonal_(math.log(1.0 - PRIOR)))  # b
        self.register_buffer("added", torch.tensor(cfg.start == 0.0))

    def groups(self) -> list[Group]:
        return [Group(list(self.net.parameters())), Group([self.layer], decay=0.0)]  # decay would even theta out

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if bool(self.added):
            return {"diagonal": self._diagonal()}
        if t.epoch == 0 or t.fraction < self.cfg.start - 1e-9:
            return {}
        counted = confusion_matrix(probabilities(sweep(self.net)), self.y, soft=self.cfg.soft)
        self.layer.data.copy_((counted + SMALLEST).log())
        self.added.fill_(True)
        return {"diagonal": self._diagonal()}

    def _diagonal(self) -> float:
        """The mean share of right labels, by the layer."""
        return float(self.layer.detach().softmax(1).diagonal().mean())

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = self.net(batch.x)
        if not bool(self.added):
            return {"loss": cross_entropy(logits, batch.y).mean()}
        return {"loss": -log_likelihood(logits, batch.y, self.layer.log_softmax(1)).mean()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """The probability that the given label is right, by the network and the layer; before there is one, as ever."""
        if not bool(self.added):
            return super().trust(sweep)
        return believed(sweep(self.net), self.y, self.layer.detach().log_softmax(1))
