"""From evidence to the rows of an audit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rte.audit.evidence import Evidence
from rte.audit.records import AMBIGUOUS, FINE, NO_CLASS, WRONG, Rows


def judge(evidence: Evidence, name: Callable[[int], str]) -> Rows:
    """The rows, most suspicious first; `name` says what to call an example."""
    e = evidence
    first, p_first = e.top[:, 0], e.top_p[:, 0]
    p_other = np.where(first == e.y, e.top_p[:, 1], p_first)
    score = np.clip(e.trust, 0.0, 1.0)
    issue = (first != e.y) & (score < 0.5)
    ambiguity = 4.0 * e.top_p[:, 0] * e.top_p[:, 1]
    no_class = 1.0 - p_first
    kind = np.full(len(e), FINE, np.uint8)
    kind[issue] = WRONG
    kind[~issue & (ambiguity > 0.75)] = AMBIGUOUS
    kind[~issue & (no_class > 0.75)] = NO_CLASS
    order = np.lexsort((np.arange(len(e)), p_other * -1.0, score))
    table = Rows(
        index=np.arange(len(e), dtype=np.int64),
        id=[name(i) for i in range(len(e))],
        given_label=e.y.astype(np.int32),
        predicted_label=first,
        label_score=score.astype(np.float32),
        is_label_issue=issue,
        given_probability=e.p_given,
        predicted_probability=p_first,
        kind=kind,
        second_label=e.top[:, 1],
        ambiguity=ambiguity.astype(np.float32),
        no_class_score=no_class.astype(np.float32),
        duplicate_of=[""] * len(e),
        reviewed={},
    )
    return table.only(order)
