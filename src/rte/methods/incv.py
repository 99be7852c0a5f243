"""Iterative noisy cross-validation (Chen 2019): keep the labels that held-out networks predict, then co-teach.

S selected (none at first), C candidates (all). In each iteration C is halved at random; from one start a network
learns S and one half, another S and the other. With f the network that has not seen a half, n selected from it,

    S <- S + {i in C : argmax f(x_i) = y_i}, which leave C;  if noise is symmetric, the floor(r n) largest -log f_y of
    each half leave C too, r = min(2, eps / (1 - eps)),
    (1 - eps)^2 + eps^2 / (K - 1) = share that agrees in the first iteration

Two fresh networks learn S, later S and C. Each ranks the batch by its loss, in evaluation mode; the other one learns
the smallest, (1 - eps_S min(1, ramp)) times as many as the batch has of S, where
eps_S = eps^2 / (eps^2 + (K - 1) (1 - eps)^2), or with 1 for K - 1 if the noise is not symmetric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from rte.methods.base import Clock, Method, Pass, Predict, Progress, Sweep, Task, Terms
from rte.parts.cross_validation import CANDIDATE, SELECTED, CrossValidation
from rte.parts.losses import cross_entropy, log_mean_probabilities
from rte.parts.schedules import within
from rte.settings import Settings, setting
from rte.views.batch import Batch

SHORTEST = 10
"""Epochs of an iteration, at least, where there is more than one."""
ROUNDING = 1e-6


class IterativeCrossValidation(Method):
    """Cross-validation chooses labels, and two networks learn them by co-teaching."""

    summary = "INCV: labels that held-out networks predict are selected by iterated cross-validation, then co-taught"
    paper = "Chen et al., 2019"

    class Config(Settings):
        noise_rate: float | None = setting(
            None, "eps: share of wrong labels; none: what the first cross-validation says", ge=0.0, lt=1.0
        )
        symmetric: bool = setting(True, "wrong labels go to all classes alike: then the worst are dropped")
        iterations: int = setting(4, f"cross-validations at most; of several, each has {SHORTEST} epochs or more", ge=1)
        selection: float = setting(
            0.5, "share of the run for cross-validation; the authors: 8 times 50 epochs before 200", gt=0.0, lt=1.0
        )
        alone: float = setting(
            0.2, "share of the rest that sees S alone, twice it for hard noise; the authors: 40 of 200", ge=0.0, le=1.0
        )
        ramp: float = setting(
            0.05, "share of the rest until eps_S is left out; the authors: 10 of 200 epochs", ge=0.0, le=1.0
        )

    cfg: Config
    stage: Tensor
    share: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.build = task.build
        self.nets = nn.ModuleList([task.build(0), task.build(0)])
        self.labels = CrossValidation(len(task.y), symmetric=cfg.symmetric)
        self.register_buffer("stage", torch.tensor([1, 0]))  # iterations in all, first epoch of the stage
        self.register_buffer("share", torch.tensor(0.0))  # of the run, at which it began

    @property
    def selecting(self) -> bool:
        """Whether cross-validation goes on."""
        return bool(self.labels.iteration < self.stage[0])

    def _until(self) -> float:
        """The share of the run at which the stage under way ends."""
        done, number = int(self.labels.iteration), int(self.stage[0])
        return self.cfg.selection * (done + 1) / number if done < number else 1.0

    def clock(self, t: Progress) -> Clock:
        return Clock(within(t, float(self.share), self._until(), epoch=int(self.stage[1])))

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if t.epoch == 0:
            self.stage[0] = max(1, min(self.cfg.iterations, int(self.cfg.selection * t.epochs) // SHORTEST))
            self._open(t)
        elif self.selecting:
            for k, net in enumerate(self.nets):
                self.labels.validate(k, sweep(net), self.y)
            if t.fraction + ROUNDING >= self._until():
                self.labels.select(self.classes, self.cfg.noise_rate)
                self._open(t)
        if not self.selecting:
            self.labels.draw(wider=self.clock(t).moment.fraction > self.cfg.alone * (2 if self.labels.hard else 1))
        return {"selected": float(len(self.labels.among(SELECTED))), "noise": float(self.labels.eps)}

    def _open(self, t: Progress) -> None:
        """Begin the next iteration, or the training on what was selected, with fresh networks."""
        if len(self.labels.among(CANDIDATE)) < 2:
            self.stage[0] = self.labels.iteration
        self.stage[1], self.share[...] = t.epoch, t.fraction
        self.labels.halve()
        for k, net in enumerate(self.nets):
            net.load_state_dict(self.build(0 if self.selecting else k).state_dict())

    def restarted(self, t: Progress) -> Iterable[nn.Parameter]:
        return self.nets.parameters() if 0 < t.epoch == int(self.stage[1]) else ()

    def passes(self, t: Progress) -> Sequence[Pass]:
        if self.selecting:
            return [Pass(index=self.labels.learnt_by(k)) for k in range(2)]
        seen = self.labels.seen.nonzero().squeeze(1)
        return [Pass(index=seen.repeat(max(1, round(len(self.y) / len(seen)))))]  # an epoch stays as long as before

    def loss(self, batch: Batch, t: Progress) -> Terms:
        if self.selecting:
            return {"loss": cross_entropy(self.nets[t.pass_number](batch.x), batch.y).mean()}
        ramp = min(1.0, self.clock(t).moment.fraction / max(self.cfg.ramp, ROUNDING))
        selected = int((self.labels.group[batch.i] == SELECTED).sum()) or len(batch)
        n = min(
            len(batch), max(2, round(selected * (1.0 - ramp * self.labels.remaining(self.classes))))
        )  # batch norm needs two
        chosen = [self._easiest(net, batch, n) for net in self.nets]
        first, second = (
            cross_entropy(net(batch.x[of]), batch.y[of]).mean() for net, of in zip(self.nets, chosen[::-1], strict=True)
        )
        return {"loss": first + second, "first": first, "second": second, "kept": n / len(batch)}

    @torch.no_grad()
    def _easiest(self, net: nn.Module, batch: Batch, n: int) -> Tensor:
        """The places of the n smallest losses of a network in evaluation mode."""
        before = net.training
        net.eval()
        losses = cross_entropy(net(batch.x), batch.y)
        net.train(before)
        return losses.topk(n, largest=False).indices

    def cost(self, t: Progress) -> float:
        return 3.0 if self.selecting else 8.0

    def predict(self, x: Tensor) -> Tensor:
        """The logarithm of the mean of both softmaxes."""
        return log_mean_probabilities([net(x) for net in self.nets])

    def networks(self) -> dict[str, Predict]:
        return {"first": self.nets[0], "second": self.nets[1]}

    def trust(self, sweep: Sweep) -> Tensor:
        """Half by the predicted probability, half by whether the label was selected; before that, as ever."""
        predicted = super().trust(sweep)
        return predicted if self.labels.iteration == 0 else (predicted + (self.labels.group == SELECTED)) / 2
