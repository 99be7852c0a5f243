"""Decoupling (Malach & Shalev-Shwartz 2017): when to update is told apart from how to update.

    S     {i in the batch : argmax f_1(x_i) != argmax f_2(x_i)}, the examples on which the two networks disagree
    L_k   sum over S of -log p_k(y_i | x_i), divided by max(m B, |S|)                      k = 1, 2; m = 0.1

Each network makes its own step with the given labels; nothing passes between them but S. Where both have learnt a
class, they agree on it, and wrong labels among its examples no longer move them. With few disagreements a step is small
instead of being made by two or three examples.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy, log_mean_probabilities
from rte.settings import Settings, setting
from rte.views.batch import Batch


class Decoupling(Method):
    """Two networks that learn only where they disagree."""

    summary = "decoupling: two networks, each updated by cross-entropy on the examples on which they disagree"
    paper = "Malach & Shalev-Shwartz, 2017"

    class Config(Settings):
        warmup: float = setting(
            0.1,
            "share of the run in which all examples are learnt; 0 by default in the authors' code",
            ge=0.0,
            lt=1.0,
        )
        least: float = setting(0.1, "m: the loss is divided by at least this share of the batch", gt=0.0, le=1.0)

    cfg: Config
    warming: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.nets = nn.ModuleList([task.build(0), task.build(1)])
        self.register_buffer("warming", torch.tensor(True))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        self.warming.fill_(t.fraction < self.cfg.warmup)
        return {}

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = [net(batch.x) for net in self.nets]
        differs = logits[0].argmax(1) != logits[1].argmax(1)
        chosen = (differs | self.warming).float()
        size = chosen.sum().clamp(min=self.cfg.least * len(batch))
        first, second = ((chosen * cross_entropy(f, batch.y)).sum() / size for f in logits)
        # the networks share no weights: the gradient of the sum is each one's own
        return {"loss": first + second, "first": first, "second": second, "disagreement": differs.float().mean()}

    def cost(self, t: Progress) -> float:
        return 6.0

    def predict(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of both softmaxes, whose softmax is that mean."""
        return log_mean_probabilities([net(x) for net in self.nets])

    def networks(self) -> dict[str, Predict]:
        return {"first": self.nets[0], "second": self.nets[1]}
