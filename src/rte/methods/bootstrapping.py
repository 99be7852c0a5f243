"""Bootstrapping (Reed 2015): part of the target is what the network itself predicts.

hard    L = -sum_k [beta t_k + (1 - beta) z_k] log p_k        beta = 0.8
soft    L = -sum_k [beta t_k + (1 - beta) p_k] log p_k        beta = 0.95

t   the given label, one-hot
p   softmax of the network
z   its largest entry, one-hot: a constant for the gradient

In the soft form the gradient flows through both p: its second part is the entropy of the prediction, which pulls it
towards certainty. beta is the weight of the given label; beta = 1 is cross-entropy.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy, entropy, probabilities
from rte.settings import Settings, setting
from rte.views.batch import Batch

AUTHORS = {"hard": 0.8, "soft": 0.95}
"""beta of each kind."""


class Bootstrapping(Method):
    """Cross-entropy with a mixture of the given label and the network's own prediction."""

    summary = "bootstrapping: the target is part given label, part the network's own prediction (Reed hard and soft)"
    paper = "Reed et al., 2015"

    class Config(Settings):
        kind: Literal["hard", "soft"] = setting("hard", "own prediction as a class (hard) or as probabilities (soft)")
        beta: float | None = setting(
            None,
            "weight of the given label; none: as the authors, hard 0.8, soft 0.95",
            ge=0.0,
            le=1.0,
            search=(0.5, 1.0),
        )

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    @property
    def beta(self) -> float:
        """The weight of the given label."""
        return AUTHORS[self.cfg.kind] if self.cfg.beta is None else self.cfg.beta

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits, beta = self.net(batch.x), self.beta
        task = cross_entropy(logits, batch.y).mean()
        if self.cfg.kind == "soft":
            own = entropy(probabilities(logits)).mean()
        else:
            own = cross_entropy(logits, logits.argmax(1)).mean()
        return {"loss": beta * task + (1.0 - beta) * own, "task": task, "own": own}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
