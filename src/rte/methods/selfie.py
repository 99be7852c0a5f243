"""SELFIE (Song 2019): learn from labels that are probably clean, and from labels that can be mended with certainty.

    F(i)   = (1 / log K) * sum_k -h_k log h_k       h_k: share of class k among the last q predictions for example i
    R      = {i : F(i) <= epsilon}                  refurbishable: their label becomes argmax_k h_k, and is remembered
    C      = the ceil((1 - tau) B) examples of the batch with the smallest -log p(given label)
    L      = mean over C and R of -log p(label), with the mended label where there is one

During the warm-up all examples are learnt, with mended labels where a network before has left some. In a long run the
network starts over: each has an equal share of the run, empty histories, and tau <- min(tau, 1 - share of mended).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.methods.base import Clock, Method, Progress, Sweep, Task, Terms
from rte.parts.losses import cross_entropy, entropy
from rte.parts.noise_rate import NoiseRate
from rte.parts.schedules import Moment, within
from rte.settings import Settings, setting
from rte.views.batch import Batch

SHORTEST = 20
"""Epochs that a network must have for another to start over after it."""

ROUNDING = 1e-6
"""Of shares of the run."""


class Selfie(Method):
    """Small losses are kept, steady predictions replace labels, and the network starts over."""

    summary = "SELFIE: small-loss examples, and those whose label is mended by steady predictions; starts over"
    paper = "Song et al., 2019"
    needs = ("noise rate",)
    tables = ("predictions", "seen", "mended")

    class Config(Settings):
        noise_rate: float | None = setting(
            None, "tau: share of wrong labels; none: the run's own estimate", ge=0.0, lt=1.0, search=(0, 0.9)
        )
        history: int = setting(15, "q: last predictions that are compared, at most the epochs of the warm-up", ge=2)
        threshold: float = setting(0.05, "epsilon: normalised entropy up to which a label is mended", ge=0.0, lt=1.0)
        warmup: float = setting(
            0.25, "share of each network's epochs in which all is learnt; the authors: 25 of 100", ge=0.0, lt=1.0
        )
        restarts: int = setting(2, f"networks that start over, at most; each has at least {SHORTEST} epochs", ge=0)

    cfg: Config
    predictions: Tensor
    seen: Tensor
    mended: Tensor
    stage: Tensor
    selects: Tensor
    share: Tensor
    most: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.build = task.build
        self.net = task.build()
        self.noise = NoiseRate(task.classes)
        self.register_buffer("predictions", torch.zeros(len(task.y), cfg.history, dtype=torch.int16))
        self.register_buffer("seen", torch.zeros(len(task.y), dtype=torch.int64))  # by the network under way
        self.register_buffer("mended", torch.full((len(task.y),), -1))  # -1: the label stands
        self.register_buffer("stage", torch.tensor([0, 1, 0, 2]))  # its number, networks in all, its first epoch, q
        self.register_buffer("share", torch.zeros(()))  # of the run, at which it began
        self.register_buffer("selects", torch.tensor(False))  # past its warm-up
        self.register_buffer("most", torch.ones(()))  # the highest tau

    def clock(self, t: Progress) -> Clock:
        return Clock(self._within(t))

    def _within(self, t: Progress) -> Moment:
        """t as it would be if the network under way had a run of its own."""
        now, networks, first, _ = self.stage.tolist()
        return within(t, float(self.share), (now + 1) / networks, epoch=first)

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        now, networks, _, _ = self.stage.tolist()
        if t.epoch == 0:
            networks = max(1, min(1 + self.cfg.restarts, t.epochs // SHORTEST))
        after = min(int(t.fraction * networks + ROUNDING), networks - 1)
        if t.epoch == 0 or after > now:
            self.share.fill_(t.fraction)
            self.stage.copy_(torch.tensor([after, networks, t.epoch, 2]))
            first = math.ceil(self.cfg.warmup * self._within(t).epochs)  # epochs of the warm-up
            self.stage[3] = min(self.cfg.history, max(2, first))
        if after > now:
            self.most.clamp_(max=1.0 - float((self.mended >= 0).float().mean()))
            self.seen.zero_()
            self.net.load_state_dict(self.build(after).state_dict())
        own = self._within(t)
        self.selects.fill_(own.epoch > 0 and own.fraction + ROUNDING >= self.cfg.warmup)
        return {"network": float(after), "mended": float((self.mended >= 0).sum())}

    def restarted(self, t: Progress) -> Iterable[nn.Parameter]:
        return self.net.parameters() if 0 < t.epoch == int(self.stage[2]) else ()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        logits, i = self.net(batch.x), batch.i
        if self.stage[0] == 0:  # later networks are sure of mended labels
            self.noise.update(logits.detach(), batch.y, t)
        tau = min(self.noise.at(t, self.cfg.noise_rate), float(self.most))
        kept = torch.ones_like(batch.y, dtype=torch.bool)
        if self.selects:
            self._mend(i)
            clean = cross_entropy(logits.detach(), batch.y).topk(math.ceil((1 - tau) * len(batch)), largest=False)
            kept = (self.mended[i] >= 0).index_fill(0, clean.indices, True)
        labels = torch.where(self.mended[i] >= 0, self.mended[i], batch.y)
        self._remember(i, logits.detach().argmax(1))
        task = cross_entropy(logits, labels)[kept].mean()
        return {"loss": task, "kept": kept.float().mean(), "mended": (labels != batch.y).float().mean(), "noise": tau}

    def _mend(self, i: Tensor) -> None:
        """Give those examples a new label whose last predictions agree."""
        q = int(self.stage[3])
        shares = histogram(self.predictions[i, :q].long(), self.classes)
        sure = (self.seen[i] >= q) & (entropy(shares) / math.log(self.classes) <= self.cfg.threshold)
        self.mended[i] = torch.where(sure, shares.argmax(1), self.mended[i])

    def _remember(self, i: Tensor, predicted: Tensor) -> None:
        self.predictions[i, self.seen[i] % int(self.stage[3])] = predicted.to(self.predictions.dtype)
        self.seen[i] += 1

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """1 or 0 where a label was mended, by whether that left it as it was; else its predicted probability."""
        return torch.where(self.mended >= 0, (self.mended == self.y).float(), super().trust(sweep))


def histogram(values: Tensor, classes: int) -> Tensor:
    """How large a share each class has in each row: (B, q) numbers of classes -> (B, K)."""
    return F.one_hot(values, classes).float().mean(1)  # sums by index would have no fixed order on a GPU
