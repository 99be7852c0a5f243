"""Plain cross-entropy on the given labels: what every robust method has to beat."""

from __future__ import annotations

from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import cross_entropy
from rte.settings import Settings, setting
from rte.views.batch import Batch


class CrossEntropy(Method):
    """L = -log f_y(x)."""

    summary = "plain cross-entropy"

    class Config(Settings):
        decay: float = setting(
            0.0, "report a moving average of the weights with this decay; 0: the network itself", ge=0.0, lt=1.0
        )

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.average = EMA(self.net, decay=cfg.decay) if cfg.decay else None

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return {"loss": cross_entropy(self.net(batch.x), batch.y).mean()}

    def after_step(self, t: Progress) -> None:
        if self.average is not None:
            self.average.update(self.net)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x) if self.average is None else self.average(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {} if self.average is None else {"student": self.net}
