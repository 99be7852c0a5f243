"""DivideMix (Li 2020): two networks tell clean from wrong labels for each other, then learn by MixMatch.

warm-up   both networks: CE - c H(p), the entropy bonus c only where noise is asymmetric
divide    w_k = P(clean | CE of network k), the lower of two Gaussians fitted to the losses of all examples
train f   (network t.pass_number in that pass) with g, the other one, held fixed; two weak views of each example;
          X = {w_g > tau} keeps its labels, U = all others lose them
              x in X    target = sharpen_T(w_g y + (1 - w_g) mean p_f)                 co-refinement
              u in U    target = sharpen_T((mean p_f + mean p_g) / 2)                  co-guessing
              X and U together mixed with themselves, l ~ Beta(alpha, alpha), l <- max(l, 1 - l)
          L = CE(X) + lambda_U MSE(U) + sum_k 1/K log((1/K) / mean p_k)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rte.methods.base import Method, Pass, Predict, Progress, Sweep, Task, Terms
from rte.parts.losses import class_balance, cross_entropy, entropy, probabilities, sharpen, soft_cross_entropy
from rte.parts.mixing import mixup
from rte.parts.mixture import two_gaussians, unit
from rte.parts.schedules import Schedule, constant
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan

NAMES = ("first", "second")
VIEWS = 2


class DivideMix(Method):
    """Two networks, a mixture model over the losses, and semi-supervised learning on the split."""

    summary = "DivideMix: two networks split the data by loss for each other, then MixMatch"
    paper = "Li et al., 2020"

    class Config(Settings):
        warmup: float = setting(0.035, "share of the run before the first split; the authors: 10 of 300 epochs", ge=0)
        entropy_weight: float = setting(0.0, "c of the warm-up; 1 where noise is asymmetric", ge=0.0)
        threshold: float = setting(0.5, "tau: labels more probably clean than this are kept", ge=0.0, lt=1.0)
        history: int = setting(1, "last epochs whose losses are averaged before the fit; 5 for extreme noise", ge=1)
        temperature: float = setting(0.5, "T of sharpening", gt=0.0, le=1.0)
        alpha: float = setting(4.0, "of mixup's Beta(alpha, alpha); 0: no mixing", ge=0.0)
        unlabelled_weight: Schedule = setting(constant(25.0), "lambda_U after its ramp", search=(0, 150), ge=0)
        ramp: float = setting(0.055, "share in which lambda_U then rises from 0; the authors: 16 of 300", ge=0)

    cfg: Config
    clean: Tensor
    losses: Tensor
    splits: Tensor
    began: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.nets = nn.ModuleList([task.build(0), task.build(1)])
        self.register_buffer("clean", torch.ones(2, len(task.y)))  # w_k of every example; all are believed at first
        self.register_buffer("losses", torch.zeros(2, cfg.history, len(task.y)))  # newest first, each scaled to [0, 1]
        self.register_buffer("splits", torch.tensor(0))
        self.register_buffer("began", torch.tensor(0.0))  # share of the run before the first split

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(weak=VIEWS if self.splits else 1)

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        if not self.splits:
            if t.epoch == 0 or t.fraction < self.cfg.warmup:
                return {}
            self.began.fill_(t.fraction)
        self.splits += 1
        for k, net in enumerate(self.nets):
            newest = unit(cross_entropy(sweep(net), self.y))
            self.losses[k] = torch.cat([newest[None], self.losses[k, :-1]])
            self.clean[k] = two_gaussians(self.losses[k, : int(self.splits)].mean(0), scale=False)
        found = {name: self._labelled(k) for k, name in enumerate(NAMES)}
        report: Terms = {f"labelled_{name}": float(kept.sum()) for name, (kept, _) in found.items()}
        return report | {f"fallback_{name}": float(gave_up) for name, (_, gave_up) in found.items()}

    def _labelled(self, k: int) -> tuple[Tensor, bool]:
        """Which labels network k may learn from (N,), in the other's judgement; and whether tau had to be given up.

        Where fewer labels pass tau than there are classes, the half of smaller loss is kept (more if some are equal).
        """
        kept = self.clean[1 - k] > self.cfg.threshold
        if int(kept.sum()) >= self.classes:
            return kept, False
        newest = self.losses[1 - k, 0]
        return newest <= newest.median(), True

    def passes(self, t: Progress) -> Sequence[Pass]:
        if not self.splits:
            return [Pass()]
        splits = [self._labelled(k)[0] for k in range(2)]
        return [Pass(index=kept.nonzero().squeeze(1), second=(~kept).nonzero().squeeze(1)) for kept in splits]

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return self._mixmatch(batch, t) if self.splits else self._warm_up(batch)

    def _warm_up(self, batch: Batch) -> Terms:
        each = [net(batch.x) for net in self.nets]
        bonus = [self.cfg.entropy_weight * entropy(probabilities(logits)) for logits in each]
        one, two = ((cross_entropy(f, batch.y) - h).mean() for f, h in zip(each, bonus, strict=True))
        return {"loss": one + two, "first": one, "second": two}

    def _mixmatch(self, batch: Batch, t: Progress) -> Terms:
        net, fixed, u = self.nets[t.pass_number], self.nets[1 - t.pass_number], batch.second
        n = VIEWS * len(batch)  # rows with labels
        with torch.no_grad():
            w = self.clean[1 - t.pass_number, batch.i][:, None]
            targets = w * F.one_hot(batch.y, self.classes) + (1 - w) * _guess(net, batch)
            x, targets = batch.views, targets.repeat(VIEWS, 1)
            if u is not None:
                guessed = (_guess(net, u) + _guess(fixed, u, fixed=True)) / 2
                x, targets = torch.cat([x, u.views]), torch.cat([targets, guessed.repeat(VIEWS, 1)])
            mixed = mixup(x, sharpen(targets, self.cfg.temperature), alpha=self.cfg.alpha, dominant=True)
        logits = net(mixed.x)
        p = probabilities(logits)
        task, balance = soft_cross_entropy(logits[:n], mixed.targets[:n]).mean(), class_balance(p)
        terms: Terms = {"loss": task + balance, "task": task, "balance": balance}
        if u is not None:
            rise = (t.fraction - float(self.began)) / max(self.cfg.ramp, 1 / t.epochs)
            weight = self.cfg.unlabelled_weight.at(t) * min(max(rise, 0.0), 1.0)
            terms["unlabelled"] = unlabelled = (p[n:] - mixed.targets[n:]).square().mean()
            terms |= {"loss": task + balance + weight * unlabelled, "unlabelled_weight": weight}
        return terms

    def cost(self, t: Progress) -> float:
        return 4.0 * VIEWS if self.splits else 6.0  # a step looks at its own views, and then learns them

    def predict(self, x: Tensor) -> Tensor:
        """The mean of both networks' logits; the paper's sum has the same order of classes."""
        return torch.stack([net(x) for net in self.nets]).mean(0)

    def networks(self) -> dict[str, Predict]:
        return dict(zip(NAMES, self.nets, strict=True))

    def trust(self, sweep: Sweep) -> Tensor:
        """The mean of both w at the last split; before the first, the predicted probability."""
        return self.clean.mean(0) if self.splits else super().trust(sweep)


def _guess(net: nn.Module, batch: Batch, *, fixed: bool = False) -> Tensor:
    """The mean prediction over the views, (B, K). A `fixed` network stays as it is, batch-norm statistics included."""
    before = net.training
    net.train(before and not fixed)
    probs = probabilities(net(batch.views))
    net.train(before)
    return probs.view(VIEWS, len(batch), -1).mean(0)
