"""JoCoR (Wei 2020): two networks with one loss that asks them to agree, learnt where it is small.

    l_i  = (1 - lambda) (CE(p1_i, y_i) + CE(p2_i, y_i)) + lambda (KL(p1_i || p2_i) + KL(p2_i || p1_i))
    keep   R(s) = 1 - tau * min((s / r)^c, 1) of the batch, s the share of the run that lies behind
    L      mean of l over the R(s) B examples where it is smallest

Two networks agree on what is right long before they agree on what is wrong, so a wrong label costs twice: its
cross-entropy and their disagreement. Both networks learn from the same examples.
"""

from __future__ import annotations

from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.losses import cross_entropy, divergence, log_mean_probabilities, probabilities
from rte.parts.noise_rate import NoiseRate
from rte.parts.small_loss import SmallLossSettings, smallest
from rte.settings import setting
from rte.views.batch import Batch


class JointTraining(Method):
    """Small-loss selection by one joint loss of two networks."""

    summary = "JoCoR: two networks that are asked to agree, trained where labels and agreement cost least"
    paper = "Wei et al., 2020"

    class Config(SmallLossSettings):
        agreement: float = setting(
            0.5, "lambda; the authors: 0.9 for CIFAR-10, 0.65 at 80 % noise, 0.85 for CIFAR-100", ge=0.0, lt=1.0
        )

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
        weight, (one, two) = self.cfg.agreement, (net(batch.x) for net in self.nets)
        self.noise.update(log_mean_probabilities([one.detach(), two.detach()]), batch.y, t)
        task = cross_entropy(one, batch.y) + cross_entropy(two, batch.y)
        p, q = probabilities(one), probabilities(two)
        apart = divergence(p, q) + divergence(q, p)
        joint = (1 - weight) * task + weight * apart
        chosen = smallest(joint, self.keep(t))
        terms = {"task": task[chosen].mean(), "disagreement": apart[chosen].mean()}
        return {"loss": joint[chosen].mean(), **terms, "kept": len(chosen) / len(batch)}

    def cost(self, t: Progress) -> float:
        return 6.0

    def predict(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of both softmaxes."""
        return log_mean_probabilities([net(x) for net in self.nets])

    def networks(self) -> dict[str, Predict]:
        return {"first": self.nets[0], "second": self.nets[1]}
