"""What an audit comes to, for people and for audit.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rte.audit.noise import MOST, STRONGEST, Estimate
from rte.audit.records import KINDS, Rows

PAIRS = 20


def summarise(rows: Rows, found: Estimate, classes: Sequence[str]) -> dict[str, Any]:
    """The content of audit.json, but for what is known of the run."""
    pairs = confused(rows, classes)
    return {
        "n": len(rows),
        "classes": list(classes),
        "issues": int(rows.is_label_issue.sum()),
        "kinds": {name: int((rows.kind == k).sum()) for k, name in enumerate(KINDS) if name},
        "noise": {name: getattr(found, name) for name in ("rate", "low", "high", "fewest", "most")},
        **_matrix(found, classes),
        "per_class": _per_class(rows, found, classes),
        "pairs": pairs,
        "sentence": sentence(found, pairs),
    }


def confused(rows: Rows, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Which labels stand most often for which, among the labels that seem wrong."""
    k, wrong = len(classes), rows.is_label_issue
    given, right = rows.given_label[wrong].astype(np.int64), rows.predicted_label[wrong].astype(np.int64)
    codes, counts = np.unique(given * k + right, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:PAIRS]
    return [
        {
            "given": classes[int(codes[j] // k)],
            "suggested": classes[int(codes[j] % k)],
            "count": int(counts[j]),
            "share": float(counts[j] / max(1, wrong.sum())),
        }
        for j in best
    ]


def sentence(found: Estimate, pairs: Sequence[dict[str, Any]]) -> str:
    """The finding in plain words."""
    low, high = round(100 * found.low), round(100 * found.high)
    span = f"{low} %" if low == high else f"{low} to {high} %"
    text = f"About {100 * found.rate:.0f} % of your labels look wrong ({span})"
    if not pairs:
        return text + "."
    return f"{text}; {pairs[0]['suggested']} is most often labelled {pairs[0]['given']}."


def _matrix(found: Estimate, classes: Sequence[str]) -> dict[str, Any]:
    if len(classes) <= MOST:
        return {
            name: [[round(v, 6) for v in row] for row in getattr(found, name).tolist()]
            for name in ("matrix", "matrix_low", "matrix_high")
        }
    off = found.matrix * (1 - np.eye(len(classes)))
    best = np.argsort(-off, axis=None, kind="stable")[:STRONGEST]
    places = [(int(j // len(classes)), int(j % len(classes))) for j in best if off.flat[j] > 0]
    return {
        "matrix": None,
        "matrix_low": None,
        "matrix_high": None,
        "strongest": [
            {
                "true": classes[a],
                "given": classes[b],
                "p": float(found.matrix[a, b]),
                "low": float(found.matrix_low[a, b]),
                "high": float(found.matrix_high[a, b]),
            }
            for a, b in places
        ],
    }


def _per_class(rows: Rows, found: Estimate, classes: Sequence[str]) -> list[dict[str, Any]]:
    flagged = np.bincount(rows.given_label[rows.is_label_issue], minlength=len(classes))
    suggested = np.bincount(rows.predicted_label[rows.is_label_issue], minlength=len(classes))
    return [
        {
            "class": name,
            "given": int(found.counts[k]),
            "issues": int(flagged[k]),
            "suggested": int(suggested[k]),
            "rate": float(found.class_rate[k]),
            "low": float(found.class_low[k]),
            "high": float(found.class_high[k]),
        }
        for k, name in enumerate(classes)
    ]
