"""How far a run has got, and when it ends: by steps and epochs, or by the clock (`rte.train.pace`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """Before step j of J of an epoch; `step` counts over the run."""

    epoch: int
    j: int
    J: int
    step: int


class Timeline(Protocol):
    """What the trainer asks of a run's length, and what it tells of its time."""

    def begin(self, step: int) -> None:
        """So many steps were made before this process."""
        ...

    def where(self, place: Place) -> tuple[int, float | None]:
        """How many epochs the run will have, and the share of it that lies behind (None: a matter of epochs)."""
        ...

    def over(self, place: Place) -> bool:
        """Whether that step is no longer made."""
        ...

    def evaluates(self, epoch: int) -> bool:
        """Whether a run that goes on is evaluated after so many epochs."""
        ...

    def stepped(self, seconds: float) -> None:
        """One more step was made, in so many seconds."""
        ...

    def paused(self, seconds: float) -> None:
        """So long it took from the last step of an epoch to the first of the next, evaluations left out."""
        ...

    def evaluated(self, seconds: float) -> None:
        """So long an evaluation took."""
        ...


@dataclass(frozen=True)
class BySteps:
    """A run of so many epochs, or of so many steps if those are fewer; evaluated every so many epochs."""

    epochs: int
    steps: int | None
    every: int

    def begin(self, step: int) -> None: ...

    def where(self, place: Place) -> tuple[int, float | None]:
        return self.epochs, None if self.steps is None else min(1.0, place.step / self.steps)

    def over(self, place: Place) -> bool:
        return place.epoch >= self.epochs or (self.steps is not None and place.step >= self.steps)

    def evaluates(self, epoch: int) -> bool:
        return epoch % self.every == 0

    def stepped(self, seconds: float) -> None: ...

    def paused(self, seconds: float) -> None: ...

    def evaluated(self, seconds: float) -> None: ...
