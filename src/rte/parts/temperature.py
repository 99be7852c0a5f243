"""The temperature of predictions, set by labels of which some are wrong."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rte.parts.transition import log_likelihood

COLDEST, HOTTEST = 0.1, 10.0
"""Between which temperatures one is looked for."""
TRIED = 24
"""Steps of the search; each leaves 0.62 of the range of log t."""
PRIOR = 2.0
"""What the square of log t costs, in examples: labels of which half are wrong say next to nothing of t."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def fit_temperature(logits: Tensor, y: Tensor, log_T: Tensor) -> float:
    """t by which labels y (N,), as they are given, are most likely:

        argmin over t of  - sum_i log sum_a softmax(logits_i / t)_a T[a, y_i] + PRIOR (log t)^2

    logits (N, K) must be of networks that have not learnt these labels. With the noise matrix T in between, t is right
    for the true classes, though some labels are wrong. By golden section in log t.
    """

    def cost(at: float) -> float:
        return PRIOR * at**2 - float(log_likelihood(logits / math.exp(at), y, log_T).sum(dtype=torch.float64))

    low, high = math.log(COLDEST), math.log(HOTTEST)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(TRIED):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = cost(right)
    return math.exp((low + high) / 2)
