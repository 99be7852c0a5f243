"""Co-teaching (Han 2018): of each batch, each of two networks learns what the other finds easiest.

    keep   R(s) = 1 - tau * min((s / r)^c, 1) of the batch, s the share of the run that lies behind
    E_k    the R(s) B examples on which network k has the smallest cross-entropy
    L      mean CE of network 1 on E_2, plus mean CE of network 2 on E_1

Networks learn the majority before the exceptions, so a small loss is a sign of a right label; because the two differ,
neither can confirm its own mistakes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.losses import cross_entropy, log_mean_probabilities
from rte.parts.noise_rate import NoiseRate
from rte.parts.small_loss import SmallLossSettings, smallest
from rte.views.batch import Batch


class CoTeaching(Method):
    """Two networks that choose each other's examples."""

    summary = "co-teaching: two networks, each trained on the examples of small loss in the other's eyes"
    paper = "Han et al., 2018"

    class Config(SmallLossSettings):
        pass

    cfg: Config
    needs = ("noise rate",)

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.nets = nn.ModuleList([task.build(0), task.build(1)])
        self.noise = NoiseRate(task.classes)

    def keep(self, t: Progress) -> float:
        """R(s), the share of a batch that is learnt from."""
        return self.cfg.keep(t, self.noise.at(t, self.cfg.noise_rate))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits = [net(batch.x) for net in self.nets]
        self.noise.update(torch.stack(logits).detach().mean(0), batch.y, t)
        keep = self.keep(t)
        one, two = (cross_entropy(each, batch.y) for each in logits)
        easy_for_two, easy_for_one = smallest(two, keep), smallest(one, keep)
        first, second = one[easy_for_two].mean(), two[easy_for_one].mean()
        # the networks share no weights: the gradient of the sum is each one's own
        return {"loss": first + second, "first": first, "second": second, "kept": len(easy_for_one) / len(batch)}

    def cost(self, t: Progress) -> float:
        return 6.0

    def predict(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of both softmaxes, whose softmax is that mean."""
        return log_mean_probabilities([net(x) for net in self.nets])

    def networks(self) -> dict[str, Predict]:
        return {"first": self.nets[0], "second": self.nets[1]}
