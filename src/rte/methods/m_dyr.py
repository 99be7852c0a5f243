"""Loss correction by a beta mixture (Arazo 2019): mixup, and labels that give way to predictions as they grow suspect.

warm-up   mixup alone, l ~ Beta(alpha, alpha)
fit       B_i = P(label i wrong | its CE), the upper of two betas fitted to the losses of all examples, every epoch
hard      (M-DYR-H)      x = l x_i + (1 - l) x_j                  target = l c_i + (1 - l) c_j
soft-to-hard (MD-DYR-SH) x = ((1-B_i) x_i + (1-B_j) x_j) / (2 - B_i - B_j)        target = (c_i + c_j) / 2
corrected target         c_i = (1 - B_i) y_i + B_i z_i
          z_i = one-hot argmax f(x_i), or softmax(f(x_i) / T) with T falling from 1 to 0.001
L = CE(f(x), target) + balance * sum_k 1/K log((1/K) / mean p_k)

B_i and z_i are of the example that is not mixed; no gradient goes through either. Soft-to-hard has a short stage
between the warm-up and the correction: inputs are mixed by B, labels as in mixup.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import class_balance, cross_entropy, probabilities, soft_cross_entropy
from rte.parts.mixing import draw, mix
from rte.parts.mixture import BINS, Betas, two_betas, upper_share
from rte.settings import Settings, setting
from rte.views.batch import Batch

MIXUP, GUIDED, CORRECTED = range(3)
MARGIN = 1e-4
"""How far B is kept from 0 and 1."""
COLDEST = 1e-3
"""The temperature at which a softmax is an argmax."""


class LossCorrection(Method):
    """One network; a mixture model over the losses says how far to believe each label."""

    summary = "loss correction (M-DYR): mixup, and labels replaced by predictions as far as a beta mixture doubts them"
    paper = "Arazo et al., 2019"

    class Config(Settings):
        variant: Literal["hard", "soft-to-hard"] = setting(
            "hard", "hard: M-DYR-H; soft-to-hard: MD-DYR-SH, made for extreme noise"
        )
        warmup: float = setting(0.35, "share of the run with mixup alone; the authors: 105 of 300 epochs", ge=0, le=1)
        guided: float = setting(
            0.017, "soft-to-hard: share mixed by B before correction; the authors: 5 of 300", ge=0, le=1
        )
        cooling: float = setting(
            0.3, "soft-to-hard: share in which T falls to 0.001; the authors: 89 of 300", gt=0, le=1
        )
        alpha: float = setting(32.0, "of mixup's Beta(alpha, alpha); 0: no mixing", ge=0.0, search=(0.2, 32))
        balance: float = setting(1.0, "weight of the term that keeps predictions spread over classes", ge=0.0)

    cfg: Config
    stage: Tensor
    low: Tensor
    high: Tensor
    table: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.register_buffer("stage", torch.tensor(MIXUP))
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.ones(()))
        self.register_buffer("table", torch.zeros(BINS))  # nothing is suspect before a fit

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        cfg = self.cfg
        if t.epoch == 0 or t.fraction < cfg.warmup:
            return {}
        guided = cfg.variant == "soft-to-hard" and t.fraction < cfg.warmup + cfg.guided
        self.stage.fill_(GUIDED if guided else CORRECTED)
        losses = cross_entropy(sweep(self.net), self.y)
        self.low, self.high, self.table = two_betas(losses)
        return {"suspect": float(self._doubt(losses).mean())}

    def _doubt(self, losses: Tensor) -> Tensor:
        return upper_share(losses, Betas(self.low, self.high, self.table))

    def temperature(self, t: Progress) -> float:
        """T, from 1 when labels begin to be corrected down to almost an argmax."""
        u = (t.fraction - self.cfg.warmup - self.cfg.guided) / self.cfg.cooling
        return 1.0 + (COLDEST - 1.0) * min(max(u, 0.0), 1.0)

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, stage = self.cfg, int(self.stage)
        weight, order = draw(len(batch), cfg.alpha)
        order, y = order.to(batch.y.device), F.one_hot(batch.y, self.classes).float()
        if stage == MIXUP:
            task = soft_cross_entropy(self.net(mix(batch.x, weight, order)), mix(y, weight, order)).mean()
            return {"loss": task, "task": task}
        hard = cfg.variant == "hard"
        doubt = self._look(batch)
        inputs = weight if hard else (1 - doubt) / (2 - doubt - doubt[order])
        if stage == CORRECTED:
            with torch.no_grad():
                guess = probabilities(self.net(batch.x).float() / (COLDEST if hard else self.temperature(t)))
            guess = F.one_hot(guess.argmax(1), self.classes).float() if hard else guess
            y, weight = torch.lerp(y, guess, doubt[:, None]), weight if hard else 0.5
        logits = self.net(mix(batch.x, inputs, order))
        task = soft_cross_entropy(logits, mix(y, weight, order)).mean()
        if stage == GUIDED:
            return {"loss": task, "task": task, "doubt": doubt.mean()}
        balance = class_balance(probabilities(logits))
        return {"loss": task + cfg.balance * balance, "task": task, "balance": balance, "doubt": doubt.mean()}

    @torch.no_grad()
    def _look(self, batch: Batch) -> Tensor:
        """B of the batch as the network is now, (B,): in evaluation mode, which leaves batch-norm statistics alone."""
        before = self.net.training
        self.net.eval()
        losses = cross_entropy(self.net(batch.x), batch.y)
        self.net.train(before)
        return self._doubt(losses).clamp(MARGIN, 1 - MARGIN)

    def cost(self, t: Progress) -> float:
        return 3.0 + int(self.stage)  # B, and z

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """1 - B; before the first fit the predicted probability."""
        if int(self.stage) == MIXUP:
            return super().trust(sweep)
        return 1 - self._doubt(cross_entropy(sweep(self.predict), self.y))
