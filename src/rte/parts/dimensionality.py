"""Local intrinsic dimensionality: how fast the number of neighbours grows with the distance (Houle 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

BATCH = 128
"""Examples among which neighbours are looked for."""
FLOOR = 1e-8


def local_dimensionality(features: Tensor, neighbours: int) -> Tensor:
    """-k / sum_j log(r_j / r_k), r_1 <= ... <= r_k the distances to the k nearest others: (B, D) -> (B,).

    The maximum likelihood estimate of Amsaleg (2015), as D2L uses it. Where there are fewer others, k is their number.
    Not a number where all neighbours lie at the same place as the example, infinite where all are equally far.
    """
    z = features.float()
    k = min(neighbours, len(z) - 1)
    apart = torch.cdist(z, z, compute_mode="donot_use_mm_for_euclid_dist")  # products would round small distances away
    apart.fill_diagonal_(-1.0)  # oneself comes first, before duplicates
    r = apart.topk(k + 1, largest=False, sorted=True).values[:, 1:]
    return -k / (r / r[:, -1:] + FLOOR).log().sum(1)


def mean_dimensionality(features: Tensor, neighbours: int, *, examples: int) -> float:
    """The mean over so many random ones of features (N, D), in batches of `BATCH`; 0 where none has a finite one.

    Drawn from torch's global generator. Neighbours are looked for within a batch, so that results do not depend on N.
    """
    drawn = features[torch.randperm(len(features))[:examples].to(features.device)]
    found = [local_dimensionality(batch, neighbours) for batch in torch.split(drawn, BATCH) if len(batch) > 2]
    values = torch.cat(found) if found else features.new_zeros(0)
    values = values[values.isfinite()]
    return float(values.mean()) if len(values) else 0.0
