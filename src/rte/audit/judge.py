"""From evidence to the rows of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rte.audit.evidence import Evidence
from rte.audit.records import AMBIGUOUS, DUPLICATE, FINE, NO_CLASS, WRONG, Rows

RARE = 0.99
"""No class: the two best classes together have less probability than among all but 1 % of the examples, and than a
half."""
EVEN = 0.75
"""Ambiguous: 4 p1 p2 of the two best classes, 1 where both have a half."""


def judge(evidence: Evidence, rate: float, name: Callable[[int], str], twins: Mapping[int, int] | None = None) -> Rows:
    """The rows, most suspicious first. As many labels are called wrong as the estimated `rate` says.

    `name` says what to call an example; `twins` the example that an example is a copy of, with another label.
    """
    e, n, twins = evidence, len(evidence), twins or {}
    score = e.score
    order = np.lexsort((np.arange(n), score))
    issue = np.zeros(n, bool)
    issue[order[: round(rate * n)]] = True
    other, p_other = e.best_but(e.y)
    doubted = issue | (score < 0.5)
    predicted = np.where(doubted, other, e.y).astype(np.int32)
    second, _ = e.best_but(predicted)
    p_predicted = np.where(doubted, p_other, e.p_given)
    ambiguity = 4.0 * e.top_p[:, 0] * e.top_p[:, 1]
    no_class = 1.0 - e.top_p[:, 0] - e.top_p[:, 1]
    kind = np.full(n, FINE, np.uint8)
    kind[issue] = WRONG
    strange = (no_class > 0.5) & (no_class >= np.quantile(no_class, RARE)) if n and e.classes > 2 else np.zeros(n, bool)
    kind[(ambiguity > EVEN) & (score > 0.2)] = AMBIGUOUS
    kind[strange] = NO_CLASS
    kind[list(twins)] = DUPLICATE
    table = Rows(
        index=np.arange(n, dtype=np.int64),
        id=[name(i) for i in range(n)],
        given_label=e.y.astype(np.int32),
        predicted_label=predicted,
        label_score=score.astype(np.float32),
        is_label_issue=issue,
        given_probability=e.p_given,
        predicted_probability=p_predicted.astype(np.float32),
        kind=kind,
        second_label=second,
        ambiguity=ambiguity.astype(np.float32),
        no_class_score=np.clip(no_class, 0.0, 1.0).astype(np.float32),
        duplicate_of=[name(twins[i]) if i in twins else "" for i in range(n)],
        reviewed={},
    )
    return table.only(order)
