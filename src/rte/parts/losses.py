"""The formulas of the objectives, one number per example.

Logits and probabilities are (B, K), given labels (B,) int64. Half precision is widened to float32 first, so the
functions may be called inside autocast. Nothing here stops a gradient: detach targets, or make them under no_grad.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from rte.errors import ConfigError

FLOOR = 1e-30
"""Smaller probabilities count as this one inside a logarithm; its reciprocal still leaves room in float32."""


def probabilities(logits: Tensor) -> Tensor:
    """Softmax over the classes in single precision, whatever autocast says: half precision has one value for all that
    a network is sure of. Returns (B, K)."""
    return logits.softmax(1, dtype=torch.float32 if logits.dtype in (torch.float16, torch.bfloat16) else None)


def log_mean_probabilities(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of several networks' softmaxes, each (B, K): logits whose softmax is that mean."""
    each = torch.stack([_wide(f).log_softmax(1) for f in logits])
    return each.logsumexp(0) - math.log(len(each))


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy with the given label: -log p_y. Returns (B,)."""
    return F.cross_entropy(_wide(logits), y, reduction="none")


def soft_cross_entropy(logits: Tensor, target_probs: Tensor) -> Tensor:
    """Cross-entropy with a distribution over the classes: -sum_k target_k log p_k. Returns (B,)."""
    return -(_wide(target_probs) * _wide(logits).log_softmax(1)).sum(1)


def gce(logits: Tensor, y: Tensor, q: float | Tensor) -> Tensor:
    """Generalised cross-entropy (Zhang & Sabuncu 2018): (1 - p_y^q) / q. Returns (B,).

    q = 0 is cross-entropy to the last bit, q = 1 is 1 - p_y (mean absolute error up to a factor). q is one number for
    the whole batch, a float or a 0-d tensor; a tensor is not checked against [0, 1], which would wait for the device.
    """
    if not isinstance(q, Tensor) and not 0.0 <= q <= 1.0:
        raise ConfigError(f"q of the generalised cross-entropy is {q}; give a number from 0 to 1.")
    nll = cross_entropy(logits, y)
    # Below eps^2 the loss is cross-entropy to the last bit. As a power of two, this floor also scales without rounding.
    least = torch.finfo(nll.dtype).eps ** 2
    q = q.clamp(min=least) if isinstance(q, Tensor) else max(q, least)
    return -torch.expm1(-q * nll) / q


def forward_corrected(logits: Tensor, y: Tensor, wrong: float) -> Tensor:
    """-log of the given label's probability where a share `wrong` of the labels is wrong, spread evenly. Returns (B,).

    -log((1 - wrong) p_y + wrong / (K - 1) (1 - p_y)): forward correction (Patrini 2017) for symmetric noise.
    wrong = 0 is cross-entropy. Its gradient is that of cross-entropy times p_y / (p_y + c), with
    c = wrong / (K - 1 - wrong K): a label that the network doubts has little gradient.
    """
    signal, chance = _signal_and_chance(wrong, logits.shape[1])
    nll = cross_entropy(logits, y)
    return nll if wrong == 0.0 else -torch.logaddexp(math.log(signal) - nll, nll.new_tensor(chance).log())


def forward_gradient(logits: Tensor, y: Tensor, wrong: float) -> Tensor:
    """The size of the gradient of `forward_corrected` at the given label's logit, (1 - p_y) p_y / (p_y + c): (B,)."""
    signal, chance = _signal_and_chance(wrong, logits.shape[1])
    p = torch.exp(-cross_entropy(logits, y))
    return (1.0 - p) * (signal * p + FLOOR) / (signal * p + chance + FLOOR)


def _signal_and_chance(wrong: float, classes: int) -> tuple[float, float]:
    """What the right class has above any other where that share of labels is wrong, and what each other one has."""
    chance = wrong / (classes - 1)
    if not 0.0 <= wrong < 1.0 - chance:
        raise ConfigError(
            f"a share of {wrong:g} wrong labels leaves nothing to learn; give one from 0 to below 1 - 1/K."
        )
    return 1.0 - wrong - chance, chance


def jensen_shannon(probs: Sequence[Tensor] | Tensor, weights: Sequence[float] | None = None) -> Tensor:
    """Jensen-Shannon divergence of n >= 2 distributions: sum_i w_i KL(p_i || M), M = sum_i w_i p_i. Returns (B,).

    `probs` is a sequence of n tensors (B, K) or one tensor (n, B, K); `weights` sum to 1, all alike unless given.
    Natural logarithm: 0 for equal distributions, log n for n distinct one-hots of equal weight. Values and gradients
    are finite for probabilities of exactly 0 (0 log 0 = 0).
    """
    p = _stacked(probs)
    if len(p) < 2:
        raise ConfigError(f"jensen_shannon compares distributions, but got {len(p)}; give at least two.")
    if weights is None:
        return divergence(p, p.mean(0)).mean(0)
    if len(weights) != len(p) or min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
        raise ConfigError(f"jensen_shannon got the weights {list(weights)}; give one for each distribution, of sum 1.")
    w = p.new_tensor(weights)[:, None]
    return (w * divergence(p, (w[:, None] * p).sum(0))).sum(0)


def divergence(p: Tensor, m: Tensor) -> Tensor:
    """Kullback-Leibler divergence KL(p || m) = sum_k p_k log(p_k / m_k) of distributions (..., K). Returns (...)."""
    p, m = _wide(p), _wide(m)
    return (p * (_log(p) - _log(m))).sum(-1)


def ensemble_consistency(teacher_probs: Tensor, views: Sequence[Tensor] | Tensor) -> Tensor:
    """Mean squared distance of N* views from the teacher: 1/(K N*) sum_i ||p' - p_i||^2. Returns (B,).

    `teacher_probs` p' is (B, K) and should carry no gradient; `views` is a sequence of N* tensors (B, K) or one
    tensor (N*, B, K).
    """
    p = _stacked(views)
    if not len(p):
        raise ConfigError("ensemble_consistency got no views; give at least one.")
    return (p - _wide(teacher_probs)).square().mean((0, 2))


def entropy(probs: Tensor) -> Tensor:
    """Shannon entropy in nats: -sum_k p_k log p_k. Returns (B,)."""
    p = _wide(probs)
    return -(p * _log(p)).sum(1)


def class_balance(probs: Tensor) -> Tensor:
    """How far the batch's mean prediction is from uniform: sum_k 1/K log((1/K) / mean_B p_k). Returns a scalar."""
    p = _wide(probs)
    return -_log(p.shape[1] * p.mean(0)).mean()


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """Lower the entropy of distributions: p_k^(1/T) / sum_j p_j^(1/T). Returns (B, K).

    T = 1 changes nothing, T -> 0 gives the one-hot of the largest.
    """
    if not temperature > 0.0:
        raise ConfigError(f"the temperature of sharpening is {temperature}; give a number above 0.")
    if temperature == 1.0:
        return _wide(probs)
    return (_log(_wide(probs)) / temperature).softmax(1)  # powers of small numbers would underflow to 0/0


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _log(p: Tensor) -> Tensor:
    return p.clamp(min=FLOOR).log()


def _stacked(probs: Sequence[Tensor] | Tensor) -> Tensor:
    if isinstance(probs, Tensor):
        return _wide(probs)
    return torch.stack([_wide(p) for p in probs]) if len(probs) else torch.empty(0)
