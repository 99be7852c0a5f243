"""What suits a run: one pure function of the estimated noise, the length of the run, and the data.

    choose(noise, even=..., epochs=..., per_epoch=..., images=..., classes=...) -> Choice

The noise is the share of labels that are wrong; None as long as nothing is known of it. Each rule is a line of
`choose`, each constant a line of the table below, with where it was measured (a page of docs/research/).
"""

from __future__ import annotations

import math
from typing import NamedTuple

# ---- the table of constants

ASSUMED = 0.4
"""Noise that learning rate and consistency go by before there is an estimate. Between 20 and 60 %; a guess."""
LEAST = 0.1
"""The least that `signal` says: a run that hardly moves never learns that the noise is less than it seems. A guess."""

CONTRAST = 3000.0
"""How many times as likely as any other class the right one is once L_q has converged; it sets q.
Measured at 40 % (q = 0.68 ahead of 0.9 by 2 points held out) and 80 % (0.9 ahead of 0.7 by 1): short-runs.md."""
HIGHEST = 0.9
"""The highest q. At 80 % noise q = 1 falls back to 12.8 held out, q = 0.9 has 14.4: short-runs.md."""
GENTLE = 0.5
"""Factor of q in short runs whose noise is not even. 0.31 instead of 0.62 on CIFAR-10N: +0.4 points of the majority
label of three people, three sizes of data: human-labels.md."""

SHORT = 15
"""Epochs up to which wrong labels are not memorised. Likelihood: +0.5 points held out in 9 epochs, 0.0 in 20 of 40,000
images, -0.7 in 25 of 10,000: short-runs.md."""
WEAK_SIGNAL = 1 / 3
"""Below this `signal`, labels say less than a network does: no likelihood, several stages. Measured at 0.11 (80 %) and
0.56 (40 %): self-distillation.md."""
EVEN = 0.75
"""Wrong labels count as evenly spread if they reach this share of the other classes. Measured: 8.6 of 9 classes at
40 % symmetric, 7.7 at 20 %, 5.6 on CIFAR-10N: human-labels.md."""
MANY = 50_000
"""Images with which importance sampling pays for `SHORT` epochs; with fewer, for a root of that. It cost 0.7 points in
14 epochs of 10,000 images, nothing in 9: importance-sampling.md."""

LONG = 45
"""Effective epochs from which consistency on a strong view pays for its cost. At 40 %: 80 epochs +0.5 points on the
test set, 26 epochs 0; at 80 % from 20 epochs on: strong-views.md."""
BEGIN = 0.1
"""Share of the run after which consistency begins; earlier the teacher knows nothing: strong-views.md."""
LATE = 0.5
"""Share of the run after which consistency is no weaker than with `ASSUMED` noise: then labels are memorised."""

FIRST, LATER, STEPS = 400, 13, 5_000
"""Epochs of the first stage times signal^1.5, of each later one, and the fewest steps of either. Measured at 80 % only:
two hours 77.8 % with stages, 65.4 % without: self-distillation.md."""
LESSON = 0.45
"""Share of a later stage's time in which its network is taught; the rest it spends on the labels."""
MOST = 99
"""Networks in a run at most."""
TAUGHT = 0.25
"""Noise that the learning rate goes by while a network is taught. A guess between 0 and 0.4."""


LOOKS = (0.1, 0.2, 0.35, 0.5)
"""Shares of a run with cross-fitting after which the noise is estimated anew; each costs a third of an epoch. The last
is where the likelihood of labels makes way for what is believed of them. A guess."""


STRENGTHS = (10.0, 200.0, 1000.0)
"""Weight decays that are tried side by side with cross-fitting, in multiples of `train.weight_decay`."""


class Stage(NamedTuple):
    """A part of a run: a network that is `taught` by the one before it, or learns the labels; `until` a share of it."""

    taught: bool
    until: float


class Choice(NamedTuple):
    """What a run should use now.

    `q` None: as set. `rate`, `taught_rate`: factors of the learning rate. `early`, `late`: factors of the consistency
    weights in the two parts of a run. `stretch`: effective epochs for each real one. `sampling`: whether examples are
    drawn by importance.
    """

    q: float | None
    likelihood: bool
    sampling: bool
    rate: float
    taught_rate: float
    early: float
    late: float
    stretch: float
    stages: tuple[Stage, ...]

    def consistency(self, fraction: float) -> float:
        """The factor of both lambdas at that share of the run."""
        return self.early if fraction < LATE else self.late

    def views(self, epochs: int, fraction: float) -> bool:
        """Whether strong views are worth their cost, in a run of so many epochs, at that share of it."""
        return round(self.stretch * epochs) >= LONG and fraction >= BEGIN


def choose(
    noise: float | None,
    *,
    even: bool,
    epochs: int,
    per_epoch: float,
    images: int,
    classes: int,
    most: int = MOST,
    eager: bool = True,
) -> Choice:
    """What suits a run of `epochs` epochs, of `per_epoch` steps each, on so many images of so many classes.

    even: whether wrong labels are spread over all other classes, as far as one can tell. most: networks that may
    follow one another. eager: whether short runs may trust labels more than L_q does.
    """
    known = noise is not None
    wrong = ASSUMED if noise is None else noise
    left, usual = signal(wrong, classes), signal(ASSUMED, classes)
    short = eager and known and epochs <= SHORT and left > WEAK_SIGNAL
    q = matching_q(wrong, classes) * (GENTLE if short and not even else 1.0)
    return Choice(
        q=q if known else None,
        likelihood=short and even,
        sampling=short and even and epochs <= SHORT * math.sqrt(min(1.0, images / MANY)),
        rate=left,
        taught_rate=signal(TAUGHT, classes),
        early=left,
        late=max(left, usual),
        stretch=max(1.0, math.sqrt(usual / left)),
        stages=divide(left, epochs, per_epoch, most),
    )


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
    """How much of the labels' mean gradient noise leaves: 1 - wrong K / (K - 1), at least `LEAST`.

    The rest of a step is the chance of which labels are wrong, so that a learning rate right for clean labels is too
    high by that much.
    """
    return max(LEAST, 1.0 - wrong * classes / (classes - 1))


def divide(left: float, epochs: int, per_epoch: float, most: int = MOST) -> tuple[Stage, ...]:
    """The stages of a run in which `left` of the labels' signal is left.

    A network needs few epochs to be able to teach another one, and each look at the labels makes it memorise some of
    the wrong ones. What is left of the run after the first network goes to those that learn from it and from each
    other.
    """
    first = max(FIRST * left**1.5, STEPS / per_epoch)
    later = min(int((epochs - first) / max(LATER, STEPS / per_epoch)), most - 1)
    if left >= WEAK_SIGNAL or later < 1:
        return (Stage(taught=False, until=1.0),)
    share = first / epochs
    stages = [Stage(taught=False, until=share)]
    for k in range(later):
        stages.append(Stage(taught=True, until=share + (1.0 - share) * (k + LESSON) / later))
        stages.append(Stage(taught=False, until=share + (1.0 - share) * (k + 1) / later if k + 1 < later else 1.0))
    return tuple(stages)
