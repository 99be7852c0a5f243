"""Which examples have a small loss: a mixture of two Gaussians over one number per example."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rte.errors import TrainingError


def two_gaussians(values: Tensor, *, iterations: int = 10, tolerance: float = 1e-2, floor: float = 5e-4) -> Tensor:
    """The probability that each value belongs to the component of lower mean: (N,) -> (N,), same dtype and device.

    As in DivideMix: values are scaled to [0, 1], then EM runs for at most `iterations` rounds or until the mean
    log-likelihood changes by less than `tolerance`; `floor` is added to each variance. It works in float64 and starts
    from 2-means begun at the extremes, so there is nothing random. Values that do not differ, up to the rounding of
    float32, all get 1: nothing tells them apart, and none is suspect. If one component is much wider than the other,
    the probability need not fall steadily with the value.
    """
    if not bool(values.isfinite().all()):
        raise TrainingError("two_gaussians got values that are not finite; check the losses it is given.")
    v = values.detach().cpu().double()
    low, high = (float(v.min()), float(v.max())) if len(v) else (0.0, 0.0)
    if high - low <= torch.finfo(torch.float32).eps * max(abs(low), abs(high)):
        return torch.ones_like(values)
    v = (v - low) / (high - low)
    upper = _two_means(v)
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
