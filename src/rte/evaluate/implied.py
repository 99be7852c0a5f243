"""What an accuracy on noisy labels means: the accuracy on true ones that it implies.

Labels are wrong with probability e, evenly over the other K - 1 classes and whatever the model says. A model that is
right with probability a then agrees with

    v = a (1 - e) + (1 - a) e / (K - 1)      so that      a = (v - e / (K - 1)) / (1 - e - e / (K - 1))

of the given labels. v is counted on n held-out labels; e is estimated from the labels of m other examples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

Z = 1.6449
"""Of each of the two intervals: 90 %. The corners of both cover more: 95 to 99 % in simulations (tests)."""


class Implied(NamedTuple):
    """The accuracy on true labels, and an interval that holds it nine times in ten or more often."""

    value: float
    low: float
    high: float


def implied_accuracy(noisy: float, n: int, noise: float, m: float, classes: int) -> Implied | None:
    """From the accuracy on n noisy labels and the noise estimated from m; None where chance explains all of it."""
    if n < 1 or m < 1 or classes < 2 or not signal(noise, classes) > 0.0:
        return None
    (low_v, high_v), (low_e, high_e) = wilson(noisy, n), wilson(noise, m)
    if noisy <= 1.0 / classes or not signal(high_e, classes) > 0.0:
        return None
    # a rises with v, and with e wherever v is above chance
    low = true_accuracy(max(low_v, 1.0 / classes), low_e, classes)
    return Implied(true_accuracy(noisy, noise, classes), low, true_accuracy(high_v, high_e, classes))


def true_accuracy(noisy: float, noise: float, classes: int) -> float:
    """The formula above, within 0 and 1."""
    return min(1.0, max(0.0, (noisy - noise / (classes - 1)) / signal(noise, classes)))


def signal(noise: float, classes: int) -> float:
    """1 - e - e / (K - 1): how much of the accuracy shows in the labels."""
    return 1.0 - noise - noise / (classes - 1)


def wilson(share: float, n: float) -> tuple[float, float]:
    """The interval of a share that was counted among n."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def sentence(noisy: float, n: int, noise: float | None, found: Implied | None) -> str:
    """What the accuracy on held-out labels means, for a person."""
    begins = f"Of the {n:,} held-out labels, noisy as they are, {100 * noisy:.1f} % are predicted."
    if noise is None or found is None:
        return f"{begins} How many of the true ones, nobody knows without an estimate of the noise: see `rte audit`."
    return (
        f"{begins} About {100 * noise:.0f} % of the labels seem wrong; if they go evenly to the other classes, "
        f"{100 * found.value:.0f} % of the true labels are predicted (between {100 * found.low:.0f} and "
        f"{100 * found.high:.0f} %)."
    )
