"""How wrong are the labels? An estimate made while training, and the settings that suit it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rte.parts.schedules import Moment

SURE = 0.1
"""The share of a batch, its most confident predictions, whose labels are looked at."""
MEMORY = 0.99
"""How much of the running mean a step keeps."""
CONTRAST = 3000.0
"""How many times as likely as any other class the right one becomes when L_q has converged; see `matching_q`."""
LEAST = 0.1
"""The least that `signal` says: a run that hardly moves would never learn that the noise is less than it seems."""
HIGHEST = 0.9
"""Above, too few examples have a gradient for a class to be learnt at all."""

SETTLED, OVER = 0.1, 0.5
"""Shares of the run: from when the estimate counts, and until when it is made, lest wrong labels have been learnt."""
ENOUGH = 400
"""Batches after which the estimate counts at any rate: in a long run a tenth would be lost to the wrong settings."""
ASSUMED = 0.4
"""The noise that the learning rate goes by before that."""
TAUGHT = 0.25
"""The noise that it goes by where a network learns what another one predicts."""
LIFE, AFTER = (400, 5_000), (13, 5_000)
"""Epochs of the first generation, times a power of `signal`, and of each later one; the fewest steps of either; see
`generations`."""
FAINT = 1 / 3
"""What the noise leaves at most of the labels' signal where generations pay: measured at 0.11, where they do, and at
0.56, where they do not."""
SHORT = 15
"""Epochs of a run that has not the time to learn wrong labels by heart, however eagerly it learns."""
MANY = 50_000
"""Images with which examples may be chosen by their pull for that long; of fewer, for fewer epochs; see `patience`."""
EVEN = 0.75
"""Wrong labels count as evenly spread if they have at least that part of the other classes, as `spread` reckons."""
GENTLE = 0.5
"""By what q is multiplied where labels may be taken at their word, and wrong ones are not evenly spread."""


@dataclass(frozen=True)
class Felt:
    """A moment of a run that seems to have other than its real number of epochs."""

    epoch: int
    epochs: int
    fraction: float


class NoiseEstimate(nn.Module):
    """The share of wrong labels, from how often they contradict the most confident predictions of a network.

    Such predictions are right long before the others are, and a network that has not memorised anything yet is
    contradicted by the wrong labels alone. Where it is seldom right, even when confident, the estimate is too high.
    `contradictions` (K, K) counts them by predicted class and given label. All are buffers, so that a resumed run goes
    on with the same estimate.
    """

    mean: Tensor
    count: Tensor
    length: Tensor
    contradictions: Tensor

    def __init__(self, classes: int, images: int = MANY) -> None:
        super().__init__()
        self.classes, self.images = classes, images
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("length", torch.zeros(()))
        self.register_buffer("contradictions", torch.zeros(classes, classes))

    @torch.no_grad()
    def update(self, logits: Tensor, y: Tensor) -> None:
        """See a batch: logits (B, K) of a network in training, given labels y (B,)."""
        confidence, predicted = logits.softmax(1).max(1)
        sure = confidence.topk(max(1, round(SURE * len(y)))).indices
        wrong = (predicted != y)[sure].float()
        self.contradictions.index_put_((predicted[sure], y[sure]), wrong, accumulate=True)
        wrong = wrong.mean()
        self.count += 1
        self.mean += (wrong - self.mean) * torch.clamp(1 / self.count, min=1 - MEMORY)

    @property
    def share(self) -> float:
        """0 to 1; 0 before anything was seen."""
        return float(self.mean)

    @property
    def spread(self) -> float:
        """To how many classes the wrong labels of a class seem to go: K - 1 if evenly, 1 if all go to one.

        The inverse of the chance that two contradictions of a class name the same label, averaged over classes by how
        many they have; K - 1 before anything was seen. Mistakes of the network itself make it seem smaller.
        """
        number = self.contradictions.sum(1)
        pairs = (self.contradictions * (self.contradictions - 1)).sum(1) / (number * (number - 1)).clamp(min=1)
        alike = float((number * pairs).sum() / number.sum().clamp(min=1))
        return 1 / alike if alike > 0 else self.classes - 1.0

    def look(self, logits: Tensor, y: Tensor, t: Moment) -> float:
        """See a batch if the run is young enough; returns the estimate."""
        if t.fraction < OVER:
            self.update(logits, y)
        return self.share

    def counts(self, t: Moment) -> bool:
        """Whether there is something to go by."""
        return t.fraction >= SETTLED or bool(self.count >= ENOUGH)

    @property
    def even(self) -> bool:
        """Whether wrong labels seem to be spread evenly over the other classes."""
        return self.spread >= EVEN * (self.classes - 1)

    def eager(self, t: Moment) -> bool:
        """Whether labels may be taken at their word: it is known that they say enough, and the run will end before
        wrong ones are learnt by heart."""
        return self.counts(t) and signal(self.share, self.classes) > FAINT and t.epochs <= SHORT

    def likely(self, t: Moment) -> bool:
        """Whether labels may be taken at their likelihood under even noise: at their word, with wrong ones that are not
        alike."""
        return self.eager(t) and self.even

    def choosy(self, t: Moment) -> bool:
        """Whether examples may then be chosen by how much their labels pull, which wrong ones soon begin to do where
        they are alike, or where images are few."""
        return self.likely(t) and t.epochs <= patience(self.images)

    def q(self, t: Moment, before: float, *, gently: bool = False) -> float:
        """The q that suits the noise; `before` there is something to go by, that one.

        `gently`: a lower one in runs in which labels may be taken at their word, but not at their likelihood, since
        wrong ones are not evenly spread. People err where images are hard, so that doubt falls on these first.
        """
        if not self.counts(t):
            return before
        q = matching_q(self.share, self.classes)
        return GENTLE * q if gently and self.eager(t) and not self.even else q

    def pace(self, t: Moment, taught: bool = False) -> float:
        """What the noise leaves of the labels' signal, or where a network is `taught` by another, of such targets'."""
        share = self.share if self.counts(t) else ASSUMED
        return signal(TAUGHT if taught else share, self.classes)

    def hold(self, t: Moment) -> float:
        """What the lambdas are multiplied by: as the learning rate, in the second half by no less than with `ASSUMED`.

        A network that has yet to learn needs what little the labels say; one that has learnt soon knows them by heart.
        """
        pace = self.pace(t)
        return pace if t.fraction < OVER else max(pace, signal(ASSUMED, self.classes))

    def settle(self, t: Moment, steps: int) -> dict[str, float]:
        """Once, before the first epoch for which there is something to go by: how long the run is felt to be, and
        into how many generations to divide it.

        `steps` have been made so far. A run of which the estimate has not seen half is only there to be timed.
        Returns what was decided by what, if it was now.
        """
        if not self.counts(t) or self.length > 0 or 2 * self.count <= steps:
            return {}
        self.length.fill_(felt_length(self.share, self.classes))
        count, first = generations(self.share, self.classes, t.epochs, max(1.0, steps / max(1, t.epoch)))
        return {"noise": self.share, "felt_length": float(self.length), "generations": float(count), "first": first}

    def felt(self, t: Moment) -> Moment:
        """The moment as schedules see it that go by how many epochs the run has."""
        return Felt(t.epoch, round(max(1.0, float(self.length)) * t.epochs), t.fraction)


def matching_q(wrong: float, classes: int) -> float:
    """The q at which L_q, once converged, believes the right class `CONTRAST` times as much as any other.

    Where a share `wrong` of labels is wrong, evenly over the other classes, the right class is
    rho = (1 - wrong) (K - 1) / wrong times as frequent among the labels of an image as any other. The minimum of the
    expected L_q has p_k proportional to frequency_k^(1 / (1 - q)), so the ratio becomes rho^(1 / (1 - q)). Without
    noise the answer is 0, which is cross-entropy; it rises with the noise, and is never above `HIGHEST`.
    """
    if wrong <= 0.0:
        return 0.0
    rho = (1.0 - wrong) * (classes - 1) / wrong
    return min(HIGHEST, max(0.0, 1.0 - math.log(rho) / math.log(CONTRAST))) if rho > 1.0 else HIGHEST


def signal(wrong: float, classes: int) -> float:
    """How much of the labels' mean gradient is left: what the right class has above any other, 1 - wrong K / (K - 1).

    The rest of a step is the chance of which labels are wrong, so that a learning rate right for clean labels is too
    high by that much. Never below `LEAST`.
    """
    return max(LEAST, 1.0 - wrong * classes / (classes - 1))


def patience(images: int) -> float:
    """For how many epochs examples may be chosen by their pull where there are so many of them.

    Measured are 10,000, where it costs in 14 epochs and brings nothing in 9, and 40,000, where it pays in 9; the root
    lies between these (docs/laptop.md). Never more than `SHORT`.
    """
    return SHORT * math.sqrt(min(1.0, images / MANY))


def felt_length(wrong: float, classes: int) -> float:
    """As how many epochs one counts where that share of labels is wrong; one with `ASSUMED` of them, or fewer, as one.

    What pays only in long runs, because it keeps wrong labels from being learnt by heart, pays the sooner the less
    there is to learn besides. The root is a guess that lies between the measured cases (docs/laptop.md).
    """
    return max(1.0, math.sqrt(signal(ASSUMED, classes) / signal(wrong, classes)))


def generations(wrong: float, classes: int, epochs: int, per_epoch: float) -> tuple[int, float]:
    """Into how many generations to divide a run of so many epochs, of so many steps each, where that share of labels is
    wrong; and the share of the run that the first of them has.

    A network needs few epochs to be able to teach another one, and each look at the labels teaches some of the wrong
    ones by heart, the sooner, the less there is to learn besides: the first has about 400 `signal`^1.5 epochs, which
    has been measured at 80 % only. What is left of the run goes to those that learn from it and from each other.
    Where more than `FAINT` is left of the signal, labels say more than a network does: no other is needed.
    """
    left = signal(wrong, classes)
    first = max(LIFE[0] * left**1.5, LIFE[1] / per_epoch)
    later = int((epochs - first) / max(AFTER[0], AFTER[1] / per_epoch))
    return (1 + later, first / epochs) if left < FAINT and later > 0 else (1, 1.0)
