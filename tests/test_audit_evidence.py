"""What an audit knows of an example, and the score it makes of it."""

from __future__ import annotations

import numpy as np
import torch

from rte.audit.evidence import KEPT, Evidence, gather
from rte.audit.judge import judge
from rte.audit.records import DUPLICATE, NO_CLASS, WRONG

N, K = 50, 12


def evidence(seed: int = 0, classes: int = K) -> tuple[np.ndarray, Evidence]:
    rng = np.random.default_rng(seed)
    logits, y = rng.normal(size=(N, classes)) * 3, rng.integers(0, classes, N)
    parts = [torch.from_numpy(part).float() for part in np.array_split(logits, 4)]
    return logits, gather(y, parts, classes)


def test_evidence_is_that_of_the_whole_matrix() -> None:
    for classes in (K, 2):
        logits, e = evidence(classes=classes)
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        for i in range(N):
            others = [p[i, k] for k in range(classes) if k != e.y[i]]
            assert np.isclose(e.p_given[i], p[i, e.y[i]], rtol=1e-4)
            assert np.isclose(e.margin[i], np.log(p[i, e.y[i]] / max(others)), rtol=1e-4, atol=1e-5)
            best = np.argsort(-p[i])[: min(KEPT, classes)]
            assert e.top[i].tolist() == best.tolist()
            np.testing.assert_allclose(e.top_p[i], p[i, best], rtol=1e-4)


def test_the_score_is_a_sigmoid_of_the_mean_of_the_last_margin_and_of_late_ones() -> None:
    _, e = evidence()
    table = torch.zeros(3, 2, 8)
    table[:, 0, :4], table[:, 1, :4] = 99.0, 1.0  # early: does not count
    table[0, 0, 4:], table[0, 1, 4:] = torch.tensor([2.0, 0.0, 4.0, 6.0]), torch.tensor([1.0, 0.0, 2.0, 1.0])
    found = e.remembering(np.array([7, 8, 9]), table)
    mean = (e.margin[7].astype(np.float64) + 12.0 / 4) / 2
    assert np.isclose(found.score[7], 1 / (1 + np.exp(-mean)))
    assert np.isclose(found.score[8], 1 / (1 + np.exp(-e.margin[8].astype(np.float64))))


def test_a_memorised_label_is_still_found_by_what_training_saw() -> None:
    y = np.zeros(100, np.int64)
    logits = torch.tensor([[5.0, 0.0, -1.0]]).repeat(100, 1)
    e = gather(y, [logits], 3)
    table = torch.ones(100, 2, 8)
    table[:, 0] = 4.0
    table[17, 0] = -4.0
    assert int(np.argmin(e.remembering(np.arange(100), table).score)) == 17


def test_rows_are_ranked_and_as_many_are_called_wrong_as_the_estimate_says() -> None:
    _, e = evidence()
    rows = judge(e, 0.2, str, {3: 5, 5: 3})
    assert rows.is_label_issue.sum() == 10
    assert rows.is_label_issue[:10].all()
    assert (np.diff(rows.label_score) >= 0).all()
    assert (rows.predicted_label[:10] != rows.given_label[:10]).all()
    assert (rows.second_label != rows.predicted_label).all()
    place = {int(i): k for k, i in enumerate(rows.index)}
    assert rows.kind[place[3]] == DUPLICATE
    assert rows.duplicate_of[place[3]] == "5"
    assert set(rows.kind[:10]) <= {WRONG, NO_CLASS, DUPLICATE}
    believed = rows.label_score > 0.5
    believed &= ~rows.is_label_issue
    assert (rows.predicted_label[believed] == rows.given_label[believed]).all()


def test_what_the_method_says_of_a_label_comes_first() -> None:
    _, e = evidence()
    found = e.trusting(np.array([4]), np.array([0.25], np.float32))
    assert found.score[4] == 0.25
    assert found.score[5] == e.score[5]
