"""The noise matrix: from a file or a name, or estimated from a network, and the likelihood of labels under it.

T[a, b] = P(given b | true a), (K, K) with rows that sum to 1; as `rte.noise` writes F.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rte.errors import ConfigError
from rte.noise.config import parse_noise
from rte.noise.matrix import NoiseModel
from rte.parts.losses import FLOOR

SURE = 0.1
"""The share of predictions, the most confident ones, whose labels are looked at for the share of wrong ones."""
HIGHEST = 0.9
"""An estimate is no higher than this share of what labels drawn blindly have: of more, nothing could be learnt."""
CERTAIN = 0.25
"""The share of each class's predictions by which its row of T is estimated; of fewer, counts are too small."""
PRIOR = 20.0
"""Labels of each class that are made up, evenly wrong, before any is counted."""


def known_matrix(text: str, classes: int, what: str = "method.matrix") -> Tensor:
    """T (K, K) in single precision, of noise written as on the command line.

    symmetric:0.4, pair:0.45 and so on, matrix:FILE for a full T, matrix:FILE:RATIO for the shape of the mistakes.
    """
    noise = parse_noise(text)
    if noise["name"] == "labels":
        raise ConfigError(f"{what} = {text}: labels are no matrix; write symmetric:0.4, pair:0.45 or matrix:FILE.")
    if noise["name"] == "matrix":
        model = NoiseModel.from_file(noise["file"], noise["ratio"] or None)
    else:
        model = NoiseModel.named(noise["name"], classes, noise["ratio"])
    if model.classes != classes:
        raise ConfigError(
            f"{what} = {text} is a matrix of {model.classes} classes, but the data have {classes}; give one for them."
        )
    return torch.from_numpy(model.F).float()


def anchor_matrix(probs: Tensor, percentile: float) -> Tensor:
    """T from the predictions (N, K) of a network that was trained on the given labels (Patrini 2017).

    Row a is the prediction for the anchor of class a: the example at that percentile of p_a (100: the highest), the
    nearest one not below it. What is predicted where the true class is certain is how labels of that class go wrong;
    the few examples beyond the anchor may be outliers.
    """
    rank = math.ceil(percentile / 100 * (len(probs) - 1) - 1e-9)
    T = probs[probs.cpu().kthvalue(rank + 1, dim=0).indices.to(probs.device)]
    return T / T.sum(1, keepdim=True)


def confusion_matrix(probs: Tensor, y: Tensor, *, soft: bool = False) -> Tensor:
    """T from how often examples that are predicted as class a have the given label b (Goldberger & Ben-Reuven 2017).

    probs (N, K), y (N,); T is on the CPU. `soft` counts each example for every class a by its p_a. A class that is
    never predicted has the row of the identity.
    """
    classes, y, probs = probs.shape[1], y.cpu(), probs.cpu()  # sums by index are in no fixed order on a GPU
    if soft:
        counts = probs.new_zeros(classes, classes).index_add_(0, y, probs).T
    else:
        counts = torch.bincount(probs.argmax(1) * classes + y, minlength=classes**2).view(classes, classes).to(probs)
    sums = counts.sum(1, keepdim=True)
    return torch.where(sums > 0, counts / sums.clamp(min=FLOOR), torch.eye(classes).to(counts))


def symmetric_matrix(wrong: float, classes: int) -> Tensor:
    """T of a share of wrong labels that is spread evenly over the other classes."""
    return torch.full((classes, classes), wrong / (classes - 1)).fill_diagonal_(1.0 - wrong)


def confident_noise(probs: Tensor, y: Tensor) -> tuple[float, Tensor]:
    """The share of labels y (N,) that contradict the `SURE` most confident predictions (N, K), and their counts (K, K).

    counts[a, b]: of those, predicted as a and labelled b. It is at most what drawing blindly would give.
    """
    classes, y, probs = probs.shape[1], y.cpu(), probs.cpu()
    confidence, predicted = probs.max(1)
    sure = confidence.topk(max(1, round(SURE * len(y)))).indices
    counts = torch.bincount(predicted[sure] * classes + y[sure], minlength=classes**2).view(classes, classes).float()
    wrong = 1.0 - float(counts.diagonal().sum() / counts.sum())
    return min(wrong, HIGHEST * (1.0 - 1.0 / classes)), counts


def confident_matrix(probs: Tensor, y: Tensor, wrong: float) -> Tensor:
    """T from the labels y (N,) of the `CERTAIN` most confident predictions (N, K) of each class.

    `PRIOR` further labels of each class are taken to be as wrong as `wrong` says, and evenly: a class that is seldom
    predicted has little else to go by.
    """
    classes, y, probs = probs.shape[1], y.cpu(), probs.cpu()
    confidence, predicted = probs.max(1)
    counts = PRIOR * symmetric_matrix(wrong, classes)
    for a in range(classes):
        own = (predicted == a).nonzero().squeeze(1)
        if len(own):
            sure = own[confidence[own].topk(math.ceil(CERTAIN * len(own))).indices]
            counts[a] += torch.bincount(y[sure], minlength=classes)
    return counts / counts.sum(1, keepdim=True)


def spread(counts: Tensor) -> float:
    """To how many classes the wrong labels of a class go, by counts (K, K) of (true, given): K - 1 if evenly, 1 if to
    one.

    The inverse of the chance that two wrong labels of a class are the same, averaged over classes by how many wrong
    labels they have; K - 1 where no two can be compared.
    """
    wrong = counts - counts.diagonal().diag()
    number = wrong.sum(1)
    pairs = (wrong * (wrong - 1)).sum(1) / (number * (number - 1)).clamp(min=1)
    alike = float((number * pairs).sum() / number.sum().clamp(min=1))
    return 1 / alike if alike > 0 else len(counts) - 1.0


def log_matrix(T: Tensor) -> Tensor:
    """log T; what is impossible counts as nearly so."""
    return T.clamp(min=FLOOR).log()


def log_likelihood(logits: Tensor, y: Tensor, log_T: Tensor) -> Tensor:
    """log P(given y | x) = log sum_a p_a T[a, y], where p = softmax(logits) is P(true | x). Returns (B,)."""
    return log_joint(logits, y, log_T).logsumexp(1)


def believed(logits: Tensor, y: Tensor, log_T: Tensor) -> Tensor:
    """The probability that the given label is right: P(true y | x, given y) = p_y T[y, y] / sum_a p_a T[a, y]: (B,)."""
    return log_joint(logits, y, log_T).softmax(1).gather(1, y[:, None]).squeeze(1)


def log_joint(logits: Tensor, y: Tensor, log_T: Tensor) -> Tensor:
    """log p_a T[a, y], (B, K)."""
    dtype = torch.float32 if logits.dtype in (torch.float16, torch.bfloat16) else None
    return logits.log_softmax(1, dtype=dtype) + log_T[:, y].T
