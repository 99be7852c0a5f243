"""Learning to reweight examples (Ren 2018): an example counts as far as learning from it helps on trusted examples.

theta(e) = theta - alpha grad sum_i e_i CE_i(theta)            a step that the weights e would make
u_i      = - d L_trusted(theta(e)) / d e_i  at e = 0           how much a little of example i lowers the trusted loss
L        = sum_i w_i CE_i            w_i = max(u_i, 0) / sum_j max(u_j, 0)

At e = 0 the derivative is alpha <grad CE_i, grad L_trusted>, and alpha cancels in w: no step has to be tried. The
products with the gradient of the trusted batch come from differentiating the noisy batch's gradient once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from rte.errors import ConfigError
from rte.methods.base import Method, Pass, Progress, Task, Terms
from rte.parts.losses import cross_entropy
from rte.parts.weighting import alignment, positive_shares
from rte.settings import Settings, setting
from rte.views.batch import Batch


class LearningToReweight(Method):
    """Cross-entropy, weighted by agreement with the gradient of trusted examples."""

    summary = "learning to reweight: each example counts as far as its gradient helps on trusted examples"
    paper = "Ren et al., 2018"
    needs = ("trusted examples",)

    class Config(Settings):
        trusted_batch: int = setting(100, "trusted examples in a step; fewer where there are fewer", ge=1)

    cfg: Config
    trusted: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        if 0 < len(task.trusted) < task.classes:
            raise ConfigError(
                f"l2rw has {len(task.trusted)} trusted examples for {task.classes} classes; set train.trusted to at "
                f"least {task.classes}, better ten for each class."
            )
        self.net = task.build()
        self.register_buffer("trusted", task.trusted, persistent=False)

    def passes(self, t: Progress) -> Sequence[Pass]:
        return [Pass(second=self.trusted, second_batch=min(self.cfg.trusted_batch, max(1, len(self.trusted))))]

    def loss(self, batch: Batch, t: Progress) -> Terms:
        if batch.second is None:
            raise ConfigError("l2rw needs trusted examples; set train.trusted, better to ten for each class.")
        parameters = [p for p in self.net.parameters() if p.requires_grad]
        with self._as_before():
            trusted = cross_entropy(self.net.forward(batch.second.x), batch.second.y).mean()
        with torch.autocast(trusted.device.type, enabled=False):
            direction = torch.autograd.grad(trusted, parameters, allow_unused=True)
        losses = cross_entropy(self.net.forward(batch.x), batch.y)  # not compiled: it is differentiated twice
        weights = positive_shares(alignment(losses, parameters, direction))
        kept = (weights > 0).float().mean()
        return {"loss": (weights * losses).sum(), "task": losses.mean(), "trusted": trusted.detach(), "kept": kept}

    @contextmanager
    def _as_before(self) -> Iterator[None]:
        """Within, batch norm uses a batch's statistics but does not remember them."""
        norms = [m for m in self.net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        momenta = [m.momentum for m in norms]
        for m in norms:
            m.momentum = 0.0
        try:
            yield
        finally:
            for m, momentum in zip(norms, momenta, strict=True):
                m.momentum = momentum

    def cost(self, t: Progress) -> float:
        return 6.0  # of an example of either batch: 9 and 3, where they are of one size

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits
