"""How well wrong labels were found, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata


def found(score: NDArray[np.floating[Any]], flagged: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> dict[str, Any]:
    """Numbers of `wrong` labels, of `flagged` ones and of `both`, and `auroc`: how often a wrong label has a lower
    score than a right one; None where all labels are alike. Of N labels each, (N,).
    """
    n, bad = len(wrong), int(wrong.sum())
    auroc = None
    if 0 < bad < n:  # the Mann-Whitney statistic; equal scores count a half
        ranks = rankdata(-score.astype(np.float64))
        auroc = float((ranks[wrong].sum() - bad * (bad + 1) / 2) / (bad * (n - bad)))
    return {"wrong": bad, "flagged": int(flagged.sum()), "both": int((wrong & flagged).sum()), "auroc": auroc}
