"""How wrong the labels are: an estimate made while training, without true labels.

`NoiseRate` is for methods that have to be told the share of wrong labels:

    self.noise = NoiseRate(task.classes)                # in __init__; a setting `noise_rate: float | None = None`
    self.noise.update(logits.detach(), batch.y, t)      # in every step
    rate = self.noise.at(t, self.cfg.noise_rate)        # what the user said, else what is known so far
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rte.parts.losses import probabilities
from rte.parts.schedules import Moment
from rte.parts.transition import HIGHEST, SURE, spread

__all__ = ["SURE", "NoiseEstimate", "NoiseRate"]

MEMORY = 0.99
"""How much of the running mean a step keeps at most."""
RECENT = 4.0
"""How many times as much a batch weighs in `NoiseRate` as in a plain mean, when it comes: those of an untrained network
are forgotten. At 40 % noise, halfway through 4 epochs of digits, a plain mean says 57 %, this one 46 %."""
SETTLED = 0.1
"""Share of the run from which the estimate counts."""
ENOUGH = 400
"""Batches after which it counts at any rate: in a long run a tenth would be lost to the wrong settings."""
UNTIL = 0.5
"""Share of the run until which it is made: later, wrong labels may have been memorised."""


class NoiseEstimate(nn.Module):
    """The share of wrong labels, from how often they contradict the most confident predictions of a network.

    Such predictions are right long before the others are, and a network that has not memorised anything yet is
    contradicted by the wrong labels alone. Where it is seldom right, even when confident, the estimate is too high.
    `contradictions` (K, K) counts them by predicted class and given label. All are buffers, so that a resumed run goes
    on with the same estimate.
    """

    mean: Tensor
    count: Tensor
    contradictions: Tensor

    def __init__(self, classes: int, recent: float = 1.0) -> None:
        """recent: how much more the newest batch weighs than in a plain mean."""
        super().__init__()
        self.classes, self.recent = classes, recent
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("contradictions", torch.zeros(classes, classes))

    @torch.no_grad()
    def update(self, logits: Tensor, y: Tensor) -> None:
        """See a batch: logits (B, K) of a network in training, given labels y (B,)."""
        confidence, predicted = probabilities(logits).max(1)
        sure = confidence.topk(max(1, round(SURE * len(y)))).indices
        wrong = (predicted != y)[sure].float()
        self.contradictions.index_put_((predicted[sure], y[sure]), wrong, accumulate=True)
        self.count += 1
        self.mean += (wrong.mean() - self.mean) * torch.clamp(self.recent / self.count, 1 - MEMORY, 1.0)

    @property
    def rate(self) -> float:
        """0 to 1; 0 before anything was seen."""
        return float(self.mean)

    def known(self, fraction: float) -> bool:
        """Whether there is something to go by, at that share of the run."""
        return fraction >= SETTLED or bool(self.count >= ENOUGH)

    @property
    def spread(self) -> float:
        """To how many classes the wrong labels of a class seem to go: K - 1 if evenly, 1 if all go to one.

        The inverse of the chance that two contradictions of a class name the same label, averaged over classes by how
        many they have; K - 1 before anything was seen. Mistakes of the network itself make it seem smaller.
        """
        return spread(self.contradictions)


class NoiseRate(nn.Module):
    """The share of wrong labels that a method goes by: what the user says, else the run's own estimate.

    All state is in buffers. Several processes average it, as `Method.running` says of every `NoiseEstimate`.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.estimate = NoiseEstimate(classes, recent=RECENT)
        self.most = HIGHEST * (1 - 1 / classes)

    def update(self, logits: Tensor, y: Tensor, t: Moment) -> None:
        """See a batch of the labels as they were given: logits (B, K), y (B,). Late in the run it looks away."""
        if t.fraction < UNTIL:
            self.estimate.update(logits, y)

    def at(self, t: Moment, given: float | None = None) -> float:
        """The rate to use now: `given` unless that is None, else the estimate; 0 until that is known."""
        if given is not None:
            return given
        return min(self.estimate.rate, self.most) if self.estimate.known(t.fraction) else 0.0
