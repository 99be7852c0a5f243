"""Networks that follow one another within a run (self-distillation): the list of stages, and which one it is now.

The first network learns the given labels. At the end of its stage a fresh one is taught `targets` (N, K), what the one
before predicts for each training image, on strong views, mixed; then it goes back to the labels, as in the second half
of a run. What a network memorised belongs to single images; another one, which sees them changed each time, picks up
from such predictions what images have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rte.parts.schedules import Moment, Within, within
from rte.recipes.policy import MOST, Stage

AGAIN = 0.5
"""Where in a run a network is that goes back to the labels."""
ROUNDS = 20
"""How often targets are made to name each class as often as the labels do: they change no more after a few."""


class Stages(nn.Module):
    """The list of stages in buffers, so that a resumed run goes on; one stage as long as nothing is planned.

    until, taught (S,) are the list. `now` is the stage under way; it began at the epoch `epoch` and the share `began`
    of the run. `opened` is the share of the run at which the last epoch was opened. `targets` are (N, K) once a network
    is taught, before that (0, K).
    """

    until: Tensor
    taught: Tensor
    now: Tensor
    epoch: Tensor
    began: Tensor
    opened: Tensor
    targets: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        longest = 2 * MOST
        self.register_buffer("until", torch.ones(longest, dtype=torch.float64))
        self.register_buffer("taught", torch.zeros(longest, dtype=torch.bool))
        self.register_buffer("now", torch.tensor(0))
        self.register_buffer("epoch", torch.tensor(0))
        self.register_buffer("began", torch.tensor(0.0, dtype=torch.float64))
        self.register_buffer("opened", torch.tensor(0.0, dtype=torch.float64))
        self.register_buffer("targets", torch.zeros(0, classes))

    @property
    def teaching(self) -> bool:
        """Whether a network learns from another now."""
        return bool(self.taught[self.now])

    @property
    def network(self) -> int:
        """The number of the network that learns now, from 0."""
        return int(self.taught[: int(self.now) + 1].sum())

    def plan(self, stages: Sequence[Stage]) -> None:
        """Set the list."""
        for k, stage in enumerate(stages):
            self.until[k], self.taught[k] = stage.until, stage.taught

    def moment(self, t: Moment) -> Moment:
        """t as it would be in a run of this stage alone, or back at the labels, in the second half of the whole one."""
        own = within(t, float(self.began), float(self.until[self.now]), epoch=int(self.epoch))
        if int(self.now) > 0 and not self.teaching:
            fraction = AGAIN + (1.0 - AGAIN) * own.fraction
            return Within(int(fraction * t.epochs), t.epochs, fraction)
        return own

    def due(self, t: Moment) -> bool:
        """Called before every epoch: whether the next stage begins with it, to the nearest epoch; then it has begun."""
        gone = t.fraction - float(self.opened)
        self.opened.fill_(t.fraction)
        end = float(self.until[self.now])
        if end >= 1.0 or t.fraction + gone / 2 < end:
            return False
        self.now += 1
        self.epoch.fill_(t.epoch)
        self.began.fill_(t.fraction)
        return True

    def teach(self, predicted: Tensor, y: Tensor) -> None:
        """Keep what a network predicts (N, K) as the next one's targets, evened to the frequencies of labels y (N,)."""
        self.targets = evened(predicted, torch.bincount(y, minlength=predicted.shape[1])).to(self.targets.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Stages:
        """To a device go the targets alone: the plan is read in every step, and not every device has its float64."""
        self.targets = fn(self.targets)
        return self

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        found = state.get(prefix + "targets")
        if found is not None:
            self.targets = torch.zeros_like(found, device=self.targets.device)
        super()._load_from_state_dict(state, prefix, *rest)


def evened(p: Tensor, wanted: Tensor) -> Tensor:
    """Probabilities p (N, K), such that all together name each class as often as `wanted` (K,) does, and rows sum to 1.

    Classes are weighted and rows normalised, alternating.
    """
    share = wanted.double() / wanted.sum()
    out = p.double()
    for _ in range(ROUNDS):
        out = out * (share / out.mean(0).clamp_min(torch.finfo(torch.float64).tiny))
        out = out / out.sum(1, keepdim=True)
    return out.to(p.dtype)
