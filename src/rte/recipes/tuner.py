"""What is known of a run, and what the policy says to it: the state behind `auto`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from rte.parts.noise_rate import UNTIL, NoiseEstimate
from rte.parts.schedules import Moment, Within
from rte.recipes.policy import EVEN, MOST, Choice, choose
from rte.recipes.stages import Stages


class Tuner(nn.Module):
    """The estimate of the noise, the stages of the run, and the policy's answers for now.

    settled (3,): the noise when it was first known, the epochs of the run, and the steps of an epoch; what was decided
    by them (views, stages) stays decided. All state is in buffers, so that a resumed run goes on with it.
    """

    settled: Tensor

    def __init__(self, images: int, classes: int, *, most: int, eager: bool) -> None:
        """most: networks that may follow one another, 0 for no limit. eager: see `choose`."""
        super().__init__()
        self.images, self.classes, self.most, self.eager = images, classes, most or MOST, eager
        self.noise = NoiseEstimate(classes)
        self.stages = Stages(classes)
        self.register_buffer("settled", torch.full((3,), torch.nan, dtype=torch.float64))

    @property
    def undecided(self) -> bool:
        """Whether the noise has not been known before any epoch yet."""
        return bool(self.settled.isnan().any())

    def moment(self, t: Moment) -> Moment:
        """t within the present stage, in a run as long as it was thought to be when the stages were planned."""
        epochs = t.epochs if self.undecided else int(self.settled[1])
        return self.stages.moment(t if epochs == t.epochs else Within(t.epoch, epochs, t.fraction))

    def now(self, m: Moment) -> Choice:
        """What suits the noise as it is estimated now."""
        return self._choose(self.noise.rate if self.noise.known(m.fraction) else None, m.epochs)

    def consistency(self, m: Moment) -> float:
        """What the consistency weights for clean labels are multiplied by; 0 where strong views do not pay."""
        first = self._choose(None if self.undecided else float(self.settled[0]), m.epochs)
        return self.now(m).consistency(m.fraction) if first.views(m.epochs, m.fraction) else 0.0

    def look(self, logits: Tensor, y: Tensor, m: Moment) -> float:
        """See a batch, in the part of a run in which wrong labels are not memorised; the noise, as estimated now."""
        if m.fraction < UNTIL:
            self.noise.update(logits, y)
        return self.noise.rate

    def settle(self, t: Moment, step: int) -> dict[str, float]:
        """Before an epoch: once the noise is known, decide on the stages; returns what was decided by what."""
        if not self.undecided or not self.noise.known(t.fraction):
            return {}
        per_epoch = max(1.0, step / max(1, t.epoch))
        self.settled.copy_(torch.tensor([self.noise.rate, t.epochs, per_epoch], dtype=torch.float64))
        stages = self._choose(self.noise.rate, t.epochs, per_epoch).stages
        self.stages.plan(stages)
        return {"noise": self.noise.rate, "epochs": t.epochs, "stages": len(stages)}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Tuner:
        """What was settled stays on the processor: not every device has float64."""
        for part in self.children():
            part._apply(fn)  # type: ignore[no-untyped-call]
        return self

    def _choose(self, noise: float | None, epochs: int, per_epoch: float = 1.0) -> Choice:
        return choose(
            noise,
            even=self.noise.spread >= EVEN * (self.classes - 1),
            epochs=epochs,
            per_epoch=per_epoch,
            images=self.images,
            classes=self.classes,
            most=self.most,
            eager=self.eager,
        )
