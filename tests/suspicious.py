"""A run made up for the tests of its page: as many suspects as asked for, with names that do harm where they can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rte.audit.records import WRONG, Audit, Rows
from rte.data.types import ArrayImages, Source
from rte.report.page.material import Material

HOSTILE = (
    "</script><script>throw Error('ran')</script>",
    "<img src=x onerror=\"throw Error('ran')\">",
    '=HYPERLINK("http://x")',
    "quote ' double \" amp & &lt;",
    "line\nbreak, comma; tab\there",
    "emoji 🐈‍⬛ and ‮reversed",
    "{{ 7 * 7 }} {% raw %} ${x} <!--",
    "\u2028 separator",
)


def rows(n: int, classes: int, *, seed: int = 0) -> Rows:
    """n suspects; every label is doubted."""
    draw = np.random.default_rng(seed)
    given = draw.integers(0, classes, n).astype(np.int32)
    suggested = ((given + draw.integers(1, classes, n)) % classes).astype(np.int32)
    names = [f"{HOSTILE[i % len(HOSTILE)]}/{i}.jpg" if i % 3 == 0 else f"photos/{i}.jpg" for i in range(n)]
    score = np.sort(draw.random(n)).astype(np.float32)
    return Rows(
        index=np.arange(n, dtype=np.int64),
        id=names,
        given_label=given,
        predicted_label=suggested,
        label_score=score,
        is_label_issue=np.ones(n, np.bool_),
        given_probability=score / 2,
        predicted_probability=1 - score / 2,
        kind=np.full(n, WRONG, np.uint8),
        second_label=given,
        ambiguity=score,
        no_class_score=score,
        duplicate_of=[""] * n,
        reviewed={},
    )


def material(
    folder: Path, n: int = 50, classes: tuple[str, ...] = HOSTILE, *, source: Source | None = None, seed: int = 0
) -> Material:
    """What a page is made of, with n suspects among n labels; pictures of noise, unless another source is given."""
    k, draw = len(classes), np.random.default_rng(seed)
    share = np.full((k, k), 0.4 / (k - 1)) + np.eye(k) * (0.6 - 0.4 / (k - 1))
    summary: dict[str, Any] = {
        "n": n,
        "classes": list(classes),
        "issues": n,
        "noise": {"rate": 0.4, "low": 0.35, "high": 0.45},
        "matrix": share.tolist(),
        "per_class": [
            {"class": name, "given": n // k, "issues": n // k, "rate": 0.4, "low": 0.3, "high": 0.5} for name in classes
        ],
        "pairs": [{"given": classes[0], "suggested": classes[1], "count": 9, "share": 0.1}],
        "sentence": f"About 40 % of your labels look wrong; {classes[0]} is most often labelled {classes[1]}.",
    }
    steps = [{"event": "step", "epoch": 0, "step": s, "seconds": s, "loss": 9.0 / s, "lr": 0.1} for s in range(1, 41)]
    ends = [{"event": "epoch", "epoch": e, "step": 10 * e, "test": {"top1": e / 5}} for e in range(1, 5)]
    if source is None:
        smooth = draw.integers(0, 256, (n, 4, 4, 3)).astype(np.uint8)
        source = ArrayImages(smooth.repeat(8, axis=1).repeat(8, axis=2))
    return Material(
        folder,
        config={"method": {"name": "rte"}, "data": {"name": "made up", "labels": None}, "net": {"name": HOSTILE[0]}},
        environment={
            "command": ["rte", "fit", "folder:a b", "--noise=pair:0.1", "--out", str(folder)],
            "started": f"2026-01-01T{seed}",
        },
        noise={"N": n, "K": k, "name": "none", "given_sha256": "0" * 64},
        journal=[*steps, *ends],
        result={
            "data": HOSTILE[1],
            "method": "rte",
            "net": "compact",
            "test": {"last": 0.8, "ece": 0.1},
            "epochs": 4,
            "train_seconds": 12.0,
            "noise": {"trained": 0.4, "warning": None},
        },
        audit=Audit(rows(n, k, seed=seed), summary),
        source=source,
    )
