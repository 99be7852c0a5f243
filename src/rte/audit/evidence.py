"""What is known of each training example when its label is judged; a few numbers each, never all its probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

KEPT = 10
"""The most probable classes that are kept of a prediction."""
LATE = 0.5
"""Share of the run from which on margins count: before it the network knows too little."""
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Evidence:
    """Of N examples: the given label y (N,), the `KEPT` most probable classes (N, M) with their probabilities (N, M),
    the given label's probability (N,), and its margin, log p_y - log p of the best other class (N,), as predicted at
    the end; the mean margin that training saw (N,), NaN where it saw none; and what the method says of the label (N,),
    0..1, NaN where that is no more than its prediction.
    """

    y: NDArray[np.int64]
    top: NDArray[np.int32]
    top_p: Singles
    p_given: Singles
    margin: Singles
    history: Singles
    trust: Singles
    classes: int

    def __len__(self) -> int:
        return len(self.y)

    def remembering(self, rows: NDArray[np.int64], table: Tensor) -> Evidence:
        """The same with what training saw of some examples: sums and counts of margins (N, 2, parts of the run)."""
        late = table[:, :, int(LATE * table.shape[2]) :].sum(2).cpu().numpy()
        history = self.history.copy()
        history[rows] = np.where(late[:, 1] > 0, late[:, 0] / np.maximum(late[:, 1], 1.0), np.nan)
        return replace(self, history=history)

    def best_but(self, labels: NDArray[np.int64] | NDArray[np.int32]) -> tuple[NDArray[np.int32], Singles]:
        """The most probable class that is not the one named (N,), and its probability."""
        place, rows = (self.top[:, 0] == labels).astype(np.int64), np.arange(len(self))
        return self.top[rows, place], self.top_p[rows, place]

    def trusting(self, rows: NDArray[np.int64], trust: Singles) -> Evidence:
        """The same with what the method says of some labels."""
        whole = self.trust.copy()
        whole[rows] = trust
        return replace(self, trust=whole)

    @property
    def score(self) -> NDArray[np.float64]:
        """How far each given label is believed, 0..1: as the method says, else sigmoid of the mean of both margins.

        The last margin alone is worthless where the network has memorised the label. What it said along the way was
        said before that, and of other views of the example.
        """
        history = np.where(np.isfinite(self.history), self.history, self.margin).astype(np.float64)
        seen = 0.5 + 0.5 * np.tanh(0.25 * (self.margin + history))
        return np.where(np.isfinite(self.trust), np.clip(self.trust.astype(np.float64), 0.0, 1.0), seen)


def gather(y: NDArray[np.int64], logits: Iterable[Tensor], classes: int) -> Evidence:
    """The evidence in predictions that come batch by batch, (B, K) each, in the order of y (N,)."""
    kept, n = min(KEPT, classes), len(y)
    top, top_p = np.empty((n, kept), np.int32), np.empty((n, kept), np.float32)
    p_given, margin, start = np.empty(n, np.float32), np.empty(n, np.float32), 0
    for part in logits:
        log_p, rows = part.float().log_softmax(1), slice(start, start + len(part))
        best = log_p.topk(kept, dim=1)
        label = torch.from_numpy(y[rows])[:, None]
        given = log_p.gather(1, label).squeeze(1)
        first = best.values[:, 0]
        other = torch.where(best.indices[:, 0] == label.squeeze(1), best.values[:, 1], first)
        top[rows], top_p[rows] = best.indices.numpy(), best.values.exp().numpy()
        p_given[rows], margin[rows] = given.exp().numpy(), (given - other).numpy()
        start += len(part)
    nothing = np.full(n, np.nan, np.float32)
    return Evidence(y, top, top_p, p_given, margin, nothing, nothing, classes)
