"""What is known of each training example when its label is judged; a few numbers each, never all its probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rte.parts.losses import probabilities

KEPT = 5
"""The most probable classes that are kept of a prediction."""
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Evidence:
    """Of N examples: the given label y (N,), the `KEPT` most probable classes (N, M) with their probabilities (N, M),
    and the given label's probability (N,), all as predicted at the end; how much the method trusts the label (N,).
    """

    y: NDArray[np.int64]
    top: NDArray[np.int32]
    top_p: Singles
    p_given: Singles
    trust: Singles
    classes: int

    def __len__(self) -> int:
        return len(self.y)

    def trusted(self, trust: Singles) -> Evidence:
        """The same with what the method says of each label."""
        return replace(self, trust=trust)


def gather(y: NDArray[np.int64], logits: Iterable[Tensor], classes: int) -> Evidence:
    """The evidence in predictions that come batch by batch, (B, K) each, in the order of y (N,)."""
    kept, n = min(KEPT, classes), len(y)
    top, top_p = np.empty((n, kept), np.int32), np.empty((n, kept), np.float32)
    p_given, start = np.empty(n, np.float32), 0
    for part in logits:
        p, rows = probabilities(part.float()), slice(start, start + len(part))
        best = p.topk(kept, dim=1)
        top[rows], top_p[rows] = best.indices.numpy(), best.values.numpy()
        p_given[rows] = p.gather(1, torch.from_numpy(y[rows])[:, None]).squeeze(1).numpy()
        start += len(part)
    return Evidence(y, top, top_p, p_given, p_given, classes)
