"""RoG (Lee 2019): robust inference by a generative classifier, fitted to the features of a trained network.

The network learns by cross-entropy, or by L_q. Before each evaluation its last features z(x) of the whole training set
are taken, and a Gaussian with mean mu_k and a covariance Sigma common to all classes is fitted to the examples of each
given label, of which only the `share` nearest to the mean counts (minimum covariance determinant, in one step). Then

    f_k(x) = mu_k Sigma^-1 z(x) - 1/2 mu_k Sigma^-1 mu_k + log 1/K

replaces the network's own logits. Wrong labels that the network has memorised lie, in its features, still nearer to
their true class than the bulk of the class they are called by, and drop out of the fit.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Sweep, Task, Terms
from rte.parts.losses import gce, probabilities
from rte.parts.robust_gaussian import linear_discriminant, robust_gaussians
from rte.settings import Settings, setting
from rte.views.batch import Batch


class RobustGenerative(Method):
    """A network trained by a simple loss, and a head of robust class Gaussians."""

    summary = (
        "RoG: class Gaussians, fitted robustly to the features of a network trained as usual, predict in its place"
    )
    paper = "Lee et al., 2019"

    class Config(Settings):
        q: float = setting(0.0, "of the loss L_q that trains the network; 0: cross-entropy", ge=0.0, le=1.0)
        share: float = setting(0.7, "share of each class, nearest to its mean, that is fitted", gt=0.0, le=1.0)

    cfg: Config
    weight: Tensor
    bias: Tensor
    fitted: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        width = getattr(self.net, "width", task.classes)  # a network without features is refused here
        self.register_buffer("weight", torch.zeros(task.classes, width))
        self.register_buffer("bias", torch.zeros(task.classes))
        self.register_buffer("fitted", torch.tensor(False))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return {"loss": gce(self.net(batch.x), batch.y, self.cfg.q).mean()}

    def epoch_end(self, t: Progress, sweep: Sweep) -> Terms:
        z = sweep(self.features)
        gaussians = robust_gaussians(z, self.y, self.classes, share=self.cfg.share, seed=t.epoch)
        weight, bias = linear_discriminant(gaussians)
        self.weight.copy_(weight)
        self.bias.copy_(bias)
        self.fitted.fill_(True)
        return {"belief": probabilities(self.head(z)).gather(1, self.y[:, None]).mean()}

    def features(self, x: Tensor) -> Tensor:
        """What the last layer of the network sees, (B, D)."""
        z: Tensor = getattr(self.net, "features", self.net)(x)
        return z

    def head(self, z: Tensor) -> Tensor:
        """The logits of the Gaussians for features (B, D), in single precision."""
        return F.linear(z.float(), self.weight, self.bias)

    def predict(self, x: Tensor) -> Tensor:
        """By the Gaussians; before they are fitted for the first time, by the network itself."""
        logits: Tensor = self.head(self.features(x)) if self.fitted else self.net(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {"softmax": self.net}
