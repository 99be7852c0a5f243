"""Generalised cross-entropy (Zhang & Sabuncu 2018): between cross-entropy (q = 0) and mean absolute error (q = 1)."""

from __future__ import annotations

from torch import Tensor

from rte.methods.base import Method, Predict, Progress, Task, Terms
from rte.parts.ema import EMA
from rte.parts.losses import gce
from rte.parts.schedules import Schedule, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch


class GeneralisedCrossEntropy(Method):
    """L_q = (1 - f_y(x)^q) / q."""

    summary = "generalised cross-entropy: a noise-robust loss between cross-entropy and mean absolute error"
    paper = "Zhang & Sabuncu, 2018"

    class Config(Settings):
        q: Schedule = setting(constant(0.7), "0 is cross-entropy, 1 is mean absolute error", search=(0, 1), ge=0, le=1)
        decay: float = setting(
            0.0, "report a moving average of the weights with this decay; 0: the network itself", ge=0.0, lt=1.0
        )

    cfg: Config

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.average = EMA(self.net, decay=cfg.decay) if cfg.decay else None

    def loss(self, batch: Batch, t: Progress) -> Terms:
        q = self.cfg.q.at(t)
        return {"loss": gce(self.net(batch.x), batch.y, q).mean(), "q": q}

    def after_step(self, t: Progress) -> None:
        if self.average is not None:
            self.average.update(self.net)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x) if self.average is None else self.average(x)
        return logits

    def networks(self) -> dict[str, Predict]:
        return {} if self.average is None else {"student": self.net}
