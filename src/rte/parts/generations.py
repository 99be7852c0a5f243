"""Networks that follow one another within a run, each taught by what the one before it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from rte.methods.base import Sweep
from rte.parts.ema import EMA
from rte.parts.losses import soft_cross_entropy
from rte.parts.mixing import mixup
from rte.parts.schedules import Moment
from rte.parts.selftune import Felt
from rte.views.batch import Batch

ROUNDS = 20
"""How often targets are evened out over the classes: they change no more after a few."""
LESSON = 0.45
"""The part of its time for which a later generation is taught."""
MOST = 99
"""How many there may be where nobody set a limit."""
MIXING = 1.0
"""alpha of mixup where a network is taught."""
AGAIN = 0.5
"""Where in a run the look at the labels begins that it has afterwards."""


class Family(Protocol):
    """The networks that each generation has in its turn."""

    student: nn.Module
    teacher: EMA | None

    def predict(self, x: Tensor) -> Tensor: ...


class Generations(nn.Module):
    """How many networks there will be, which of them learns now and since when, and what the later ones are taught.

    The first learns the given labels. At the end of its time the next one begins anew and is taught `targets` (N, K),
    what the one before predicted for each training image, on strong views, mixed; then it goes back to the labels, as
    in the second half of a run. What a network learnt by heart belongs to single images; another one, which sees them
    changed each time, picks up from such predictions what images have in common, and reads the labels with better eyes.
    The first has `share` of the run, the later ones divide the rest evenly, to the nearest epoch. `stage` counts: 0 for
    the first, then odd while a network is taught, and even while it is back at the labels. All of it is in buffers, so
    that a resumed run goes on; where there can be one generation only, nothing is saved or changed.
    """

    count: Tensor
    share: Tensor
    stage: Tensor
    first: Tensor
    began: Tensor
    epoch: Tensor
    opened: Tensor
    targets: Tensor

    def __init__(
        self, y: Tensor, classes: int, build: Callable[[], nn.Module], *, most: int, known: bool = True
    ) -> None:
        """For given labels y (N,); `build` makes network after network, of which the first is in use already.

        There will be `most` of them, with equal parts of the run, if that is `known` already; else as `open` is told.
        0: one if that is known, else no limit.
        """
        super().__init__()
        most = most or (1 if known else MOST)
        self.given, self.classes, self.build, self.most, self.made = y, classes, build, most, 1

        def keep(name: str, value: Tensor) -> None:
            self.register_buffer(name, value, persistent=most > 1)

        keep("count", torch.tensor(most if known else 1))
        keep("share", torch.tensor(1.0 / most if known else 1.0))
        keep("stage", torch.tensor(0))
        keep("first", torch.tensor(0))  # epoch and share of the run at which this one began
        keep("began", torch.tensor(0.0))
        keep("epoch", torch.tensor(0))  # the epoch that was opened last, and at which share of the run that was
        keep("opened", torch.tensor(0.0))
        keep("targets", torch.zeros(len(y) if most > 1 else 0, classes))

    @property
    def taught(self) -> bool:
        """Whether a network learns from another now."""
        return self.most > 1 and bool(self.stage % 2)

    @property
    def number(self) -> int:
        """How many networks there were before this one."""
        return (int(self.stage) + 1) // 2

    @property
    def end(self) -> float:
        """At which share of the run this stage is to end."""
        later, share, stage = int(self.count) - 1, float(self.share), int(self.stage)
        if stage >= 2 * later:
            return 1.0
        return share + (1.0 - share) * (stage // 2 + LESSON * (stage % 2)) / later

    def moment(self, t: Moment) -> Moment:
        """t as it would be in a run of this stage alone, or back at the labels, in the second half of the whole one."""
        if self.most == 1 or self.count == 1:
            return t
        began = float(self.began)
        share = max(self.end - began, torch.finfo(torch.float32).eps)
        fraction = min(1.0, max(0.0, (t.fraction - began) / share))
        if self.stage > 0 and not self.taught:
            fraction = AGAIN + (1.0 - AGAIN) * fraction
            return Felt(int(fraction * t.epochs), t.epochs, fraction)
        return Felt(t.epoch - int(self.first), max(1, round(share * t.epochs)), fraction)

    def open(self, t: Moment, sweep: Sweep, family: Family, plan: Mapping[str, float]) -> dict[str, float]:
        """Before every epoch, in order: let the next stage begin if it is due, and say so.

        `plan` tells how many there should be (`generations`) and what share of the run the first has (`first`), when
        that is known. Runs that leap over epochs are only there to be timed.
        """
        report = {}
        if plan:
            self.count.fill_(min(int(plan["generations"]), self.most))
            self.share.fill_(plan["first"] if self.count > 1 else 1.0)
            report = {"generations": float(self.count), "first": float(self.share)}
        gone, follows = t.fraction - float(self.opened), t.epoch == int(self.epoch) + 1
        self.epoch.fill_(t.epoch)
        self.opened.fill_(t.fraction)
        if self.end >= 1.0 or not follows or t.fraction + gone / 2 < self.end:
            return report
        self.stage += 1
        self.first.fill_(t.epoch)
        self.began.fill_(t.fraction)
        if self.taught:
            predicted = sweep(family.predict, reported=True).softmax(1).cpu()
            self.targets.copy_(evened(predicted, torch.bincount(self.given, minlength=self.classes)))
            family.student.load_state_dict(self._next().state_dict())
            if family.teacher is not None:
                family.teacher.restart(family.student)
        return {**report, "generation": 1.0 + self.number, "taught": float(self.taught)}

    def _next(self) -> nn.Module:
        """Networks are made in order, and a resumed run makes those again that it had, so that it has the same."""
        for _ in range(self.made, self.number):
            self.build()
        self.made = self.number + 1
        return self.build()

    def loss(self, student: Callable[[Tensor], Tensor], batch: Batch) -> dict[str, Tensor | float]:
        """The terms where a network is taught: cross-entropy of the targets with the student on strong views, mixed."""
        mixed = mixup(batch.strong(0), self.targets[batch.i], alpha=MIXING, dominant=True)
        task = soft_cross_entropy(student(mixed.x), mixed.targets).mean()
        return {"loss": task, "task": task, "generation": 1.0 + self.number}


def evened(p: Tensor, wanted: Tensor) -> Tensor:
    """Probabilities p (N, K), such that all together name each class as often as `wanted` (K,) does, and rows sum to 1.

    Classes are weighted, rows normalised, by turns.
    """
    share = wanted.double() / wanted.sum()
    out = p.double()
    for _ in range(ROUNDS):
        out = out * (share / out.mean(0).clamp_min(torch.finfo(torch.float64).tiny))
        out = out / out.sum(1, keepdim=True)
    return out.to(p.dtype)
