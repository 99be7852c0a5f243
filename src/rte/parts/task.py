"""What the given labels ask of a network: L_q, or in short runs what suits the noise better."""

from __future__ import annotations

from torch import Tensor

from rte.parts.losses import forward_corrected, forward_pull, gce
from rte.parts.schedules import Moment
from rte.parts.selftune import NoiseEstimate
from rte.parts.visits import Visits
from rte.views.batch import Batch


def task_loss(
    logits: Tensor,
    batch: Batch,
    t: Moment,
    *,
    q: float,
    noise: NoiseEstimate | None = None,
    visits: Visits | None = None,
    eager: bool = False,
) -> tuple[Tensor, dict[str, Tensor | float]]:
    """The mean loss of the labels of a batch under logits (B, K), and the terms to journal.

    L_q = (1 - f_y(x)^q) / q (eq. gce). With `eager`, where the `noise` that the run estimates allows it, the
    likelihood of the labels takes its place if wrong ones are evenly spread, and `visits` remember how much each
    label still pulls. The estimate is made here, too, from examples that were not chosen by their pull.
    """
    y, seen = batch.y, dict[str, Tensor | float]()
    if noise is not None:
        fair = visits is None or not visits.begun  # examples chosen by their pull are no sample of the labels
        seen["noise"] = noise.look(logits, y, t) if fair else noise.share
    if eager and noise is not None and noise.likely(t):
        if visits is not None:
            visits.remember(batch.i, forward_pull(logits.detach(), y, noise.share))
        task = forward_corrected(logits, y, noise.share).mean()
        return task, {"task": task, **seen}
    task = gce(logits, y, q).mean()
    return task, {"task": task, "q": q, **seen}
