"""Small-loss selection (Han 2018): as training goes on, less of each batch is learnt, what has the smallest loss.

keep   R(s) = 1 - tau * min((s / r)^c, 1) of the batch, s the share of the run that lies behind
"""

from __future__ import annotations

import math

from torch import Tensor

from rte.parts.schedules import Moment
from rte.settings import Settings, setting


class SmallLossSettings(Settings):
    """What every method that selects in this way can be told."""

    noise_rate: float | None = setting(
        None, "tau: share of wrong labels; unless given, the run's own estimate", ge=0.0, lt=1.0, search=(0, 0.9)
    )
    ramp: float = setting(
        0.05,
        "r: share of the run until tau is reached, an epoch at least; the authors: 10 of 200",
        ge=0.0,
        le=1.0,
    )
    exponent: float = setting(1.0, "c: the shape of the ramp; 1 is a straight line", gt=0.0)

    def keep(self, t: Moment, noise: float) -> float:
        """R(s) at a share `noise` of wrong labels."""
        return 1.0 - noise * math.pow(min(t.fraction / max(self.ramp, 1 / t.epochs), 1.0), self.exponent)


def smallest(losses: Tensor, share: float) -> Tensor:
    """The places of that share of (B,) losses, the smallest ones; of one at least."""
    return losses.detach().topk(max(1, round(share * len(losses))), largest=False).indices
