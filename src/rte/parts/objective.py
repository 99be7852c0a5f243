"""The objective that RTE shares with two of its ablations, which differ from it in the target of ECR alone.

L = L_q + lambda_JSD * JSD + lambda_ECR * ECR                                                 (eq. rteloss)
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from rte.parts.losses import ensemble_consistency, jensen_shannon, sharpen
from rte.parts.schedules import Moment, Schedule, Sine, constant
from rte.settings import Settings, setting

MOST_VIEWS = 100
PAIR = 2
"""Strong views that JSD compares with the weak one."""


class ObjectiveSettings(Settings):
    """What every method with this objective can be told."""

    q: Schedule = setting(
        Sine(scale=0.6), "q of L_q: 0 is cross-entropy, 1 mean absolute error", search=(0, 1), ge=0, le=1
    )
    jsd_weight: Schedule = setting(constant(12.0), "lambda_JSD", search=(0, 20), ge=0)
    ecr_weight: Schedule = setting(constant(1.0), "lambda_ECR", search=(0, 5), ge=0)
    views: Schedule = setting(
        constant(2), "N*: strong views per example that ECR sees", search=[2, 3, 4, 5, 6], ge=0, le=MOST_VIEWS
    )

    def n_star(self, t: Moment) -> int:
        """N*, or 0 where ECR is switched off."""
        return round(self.views.at(t)) if self.ecr_weight.at(t) else 0

    def pair(self, t: Moment) -> int:
        """How many strong views JSD sees: a pair, or none where it is switched off."""
        return PAIR if self.jsd_weight.at(t) else 0


def objective(
    task: Tensor,
    *,
    p_orig: Tensor | None,
    pair: Sequence[Tensor],
    target: Tensor | None,
    views: Sequence[Tensor],
    temperature: float,
    jsd_weight: float,
    ecr_weight: float,
) -> dict[str, Tensor | float]:
    """The loss and its terms, from the task loss (B,) and probabilities (B, K); p_orig and target without gradient.

    JSD = (KL(p_orig || M) + sum_i KL(pair_i || M)) / (1 + len(pair)),    M their mean            (eq. jsd)
    ECR = 1/(K N*) sum_i || sharpen_T(target) - views_i ||^2                                      (eq. meanteacher)

    A term of weight 0 or without views is left out. Target and views may be of other examples than the pair.
    """
    loss = mean = task.mean()
    terms: dict[str, Tensor | float] = {"task": mean}
    if jsd_weight and p_orig is not None and pair:
        terms["jsd"] = jsd = jensen_shannon([p_orig, *pair]).mean()
        loss = loss + jsd_weight * jsd
    if ecr_weight and target is not None and views:
        terms["ecr"] = ecr = ensemble_consistency(sharpen(target, temperature), views).mean()
        loss = loss + ecr_weight * ecr
    return {"loss": loss, **terms}
