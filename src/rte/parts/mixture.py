"""Which examples have a small loss: a mixture of two Gaussians, or of two betas, over one number per example."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rte.errors import TrainingError

BINS = 100
"""Of the table that a fitted mixture of betas is."""
EDGE = 1e-4
"""How far scaled values are kept from 0 and 1, where the density of a beta may be infinite."""


def two_gaussians(
    values: Tensor, *, iterations: int = 10, tolerance: float = 1e-2, floor: float = 5e-4, scale: bool = True
) -> Tensor:
    """The probability that each value belongs to the component of lower mean: (N,) -> (N,), same dtype and device.

    As in DivideMix: values are scaled to [0, 1] (not if `scale` is false: means of such values), then EM runs for at
    most `iterations` rounds or until the mean log-likelihood changes by less than `tolerance`; `floor` is added to each
    variance. It works in float64 and starts from 2-means begun at the extremes, so there is nothing random. Values that
    do not differ, up to the rounding of float32, all get 1: nothing tells them apart, and none is suspect. If one
    component is much wider than the other, the probability need not fall steadily with the value.
    """
    if not bool(values.isfinite().all()):
        raise TrainingError("two_gaussians got values that are not finite; check the losses it is given.")
    v = values.detach().cpu().double()
    low, high = (float(v.min()), float(v.max())) if len(v) else (0.0, 0.0)
    if high - low <= torch.finfo(torch.float32).eps * max(abs(low), abs(high)):
        return torch.ones_like(values)
    scaled = (v - low) / (high - low)
    v, upper = scaled if scale else v, _two_means(scaled)
    mixture = _maximise(v, torch.stack([~upper, upper]).double(), floor)
    before = -math.inf
    for _ in range(iterations):
        share, likelihood = _expect(v, *mixture)
        mixture = _maximise(v, share, floor)
        if abs(likelihood - before) < tolerance:
            break
        before = likelihood
    share, _ = _expect(v, *mixture)
    _, mean, _ = mixture
    return share[int(mean.argmin())].to(values)


def unit(values: Tensor) -> Tensor:
    """(N,) scaled to [0, 1]; all 0 if they do not differ."""
    low, high = values.aminmax()
    return (values - low) / (high - low).clamp(min=torch.finfo(values.dtype).tiny)


def _two_means(v: Tensor) -> Tensor:
    """Lloyd's algorithm in one dimension from the centres 0 and 1: which values (N,) belong to the upper one."""
    cut = v.new_tensor(0.5)
    for _ in range(100):
        upper = v > cut
        before, cut = cut, (v[upper].mean() + v[~upper].mean()) / 2
        if cut == before:
            break
    return upper


def _maximise(v: Tensor, share: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, means and variances (2,) from responsibilities (2, N)."""
    total = share.sum(1) + torch.finfo(v.dtype).eps
    mean = (share @ v) / total
    variance = (share * (v - mean[:, None]).square()).sum(1) / total + floor
    return total / len(v), mean, variance


def _expect(v: Tensor, weight: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, float]:
    """Responsibilities (2, N) and the mean log-likelihood."""
    log_density = -0.5 * ((v - mean[:, None]).square() / variance[:, None] + (2 * math.pi * variance).log()[:, None])
    joint = weight.log()[:, None] + log_density
    return joint.softmax(0), float(joint.logsumexp(0).mean())


class Betas(NamedTuple):
    """A fitted mixture of two betas: `low` and `high` become 0 and 1, and table[b] is P(upper component) in bin b."""

    low: Tensor
    high: Tensor
    table: Tensor


def two_betas(values: Tensor, *, iterations: int = 10, trim: float = 0.05) -> Betas:
    """Fit a mixture of two betas to (N,) values that are not negative, such as losses.

    As in Arazo (2019): what lies outside the quantiles `trim` and 1 - `trim` is left out, the rest is scaled to [0, 1];
    EM starts from Beta(1, 2) and Beta(2, 1) in equal parts, and its M-step takes weighted moments:

        alpha = m (m (1 - m) / s^2 - 1),    beta = alpha (1 - m) / m

    The probability of the component of higher mean is flat behind its maximum, which would otherwise fall where the
    lower component has the longer tail. Values that do not differ have probability 0: none is suspect.
    """
    if not bool(values.isfinite().all()):
        raise TrainingError("two_betas got values that are not finite; check the losses it is given.")
    v = values.detach().cpu().double()
    low, high = torch.quantile(v, torch.tensor([trim, 1 - trim], dtype=v.dtype)) if len(v) else torch.zeros(2)
    table = torch.zeros(BINS, dtype=torch.float64)
    if high - low > torch.finfo(torch.float32).eps * max(abs(float(low)), abs(float(high))):
        kept = ((v[(v >= low) & (v <= high)] - low) / (high - low)).clamp(EDGE, 1 - EDGE)
        weight, alpha, beta = (torch.tensor(pair, dtype=v.dtype) for pair in ((0.5, 0.5), (1.0, 2.0), (2.0, 1.0)))
        for _ in range(iterations):
            weight, alpha, beta = _moments(kept, _shares(kept, weight, alpha, beta))
        centres = (torch.arange(BINS, dtype=v.dtype) + 0.5) / BINS
        table = _shares(centres, weight, alpha, beta)[int((alpha / (alpha + beta)).argmax())]
        table[int(table.argmax()) :] = table.max()
    return Betas(*(part.to(values) for part in (low, high, table)))


def upper_share(values: Tensor, betas: Betas) -> Tensor:
    """The probability that each value belongs to the component of higher mean: (N,) -> (N,)."""
    scaled = (values - betas.low) / (betas.high - betas.low).clamp(min=torch.finfo(values.dtype).tiny)
    return betas.table[(scaled.clamp(0, 1) * BINS).long().clamp(max=BINS - 1)]


def _shares(v: Tensor, weight: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Responsibilities (2, N) of two betas."""
    constant = torch.lgamma(alpha + beta) - torch.lgamma(alpha) - torch.lgamma(beta) + weight.log()
    powers = (alpha - 1)[:, None] * v.log() + (beta - 1)[:, None] * torch.log1p(-v)
    return (constant[:, None] + powers).softmax(0)


def _moments(v: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, alphas and betas (2,) from responsibilities (2, N)."""
    total = share.sum(1) + torch.finfo(v.dtype).tiny
    mean = ((share @ v) / total).clamp(EDGE, 1 - EDGE)
    variance = (share * (v - mean[:, None]).square()).sum(1) / total + EDGE**2
    alpha = mean * (mean * (1 - mean) / variance - 1).clamp(min=EDGE)
    return total / len(v), alpha, alpha * (1 - mean) / mean
