"""How well wrong labels were found, against counting every pair."""

from __future__ import annotations

import numpy as np
import pytest

from rte.evaluate.flags import found


def test_auroc_counts_pairs_in_which_the_wrong_label_has_the_lower_score() -> None:
    draw = np.random.default_rng(0)
    score, wrong = draw.integers(0, 6, 40) / 6, draw.random(40) < 0.4
    pairs = [(a < b) + 0.5 * (a == b) for a in score[wrong] for b in score[~wrong]]
    told = found(score, score < 0.5, wrong)
    assert told["auroc"] == pytest.approx(np.mean(pairs))
    assert (told["wrong"], told["flagged"]) == (wrong.sum(), (score < 0.5).sum())
    assert told["both"] == (wrong & (score < 0.5)).sum()


@pytest.mark.parametrize("wrong", [True, False])
def test_there_is_no_auroc_where_all_labels_are_alike(wrong: bool) -> None:
    assert found(np.zeros(3), np.ones(3, bool), np.full(3, wrong))["auroc"] is None
