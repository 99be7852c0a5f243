"""What a method is: one `nn.Module` whose functions the trainer calls at fixed times.

The trainer owns the loop:

    method.epoch_start(t, sweep)                        # once per epoch
    for part in method.passes(t):                       # usually one: all examples
        for batch in loader(part, method.views(t)):
            method.step(batch, t, update)               # loss, backward, optimiser
            method.after_step(t)                        # move the moving average

`state_dict()` is the checkpoint: networks, teachers, and per-example tables, which are buffers addressed by `batch.i`.
Randomness inside a step (dropout, mixup) may be drawn from torch's global generator: the trainer seeds it before each
step from (seed, step), so that a resumed run draws the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from rte.parts.schedules import Moment
from rte.settings import Settings
from rte.views.batch import Batch, Plan

Terms: TypeAlias = dict[str, Tensor | float]
"""Named parts of an objective; "loss" is what is minimised, the others are journalled beside it."""

Predict: TypeAlias = Callable[[Tensor], Tensor]
"""x (B, C, H, W) -> logits (B, K)."""


class Sweep(Protocol):
    """A network -> its output (N, K) on the un-augmented training set, in index order, evaluation mode, no gradient.

    `reported`: as results are, from mirror images too where the run predicts from them (`views.mirror`).
    """

    def __call__(self, predict: Predict, *, reported: bool = False) -> Tensor: ...


class Update(Protocol):
    """Backward of a scalar, and one optimiser step unless `more` parts of the same loss follow.

    Parameters that the loss does not depend on stay as they are.
    """

    def __call__(self, loss: Tensor, more: bool = False) -> None: ...


@dataclass(frozen=True)
class Progress:
    """Where in the run a step is: step j of J of this epoch, in pass number `part`; `step` counts over the run.

    `steps` is the length of a run that ends after so many steps, wherever in an epoch that is. Earlier steps
    whose `price` was more than one have brought the end nearer by `extra`.
    """

    epoch: int
    epochs: int
    j: int = 0
    J: int = 1
    step: int = 0
    part: int = 0
    steps: int | None = None
    extra: float = 0.0

    @property
    def fraction(self) -> float:
        """k/K of the paper: the share of the run that lies behind."""
        if self.steps is not None:
            return min(1.0, (self.step + self.extra) / self.steps)
        return (self.epoch * self.J + self.j) / (self.epochs * self.J)


@dataclass(frozen=True)
class Pass:
    """Some examples to go through once, in random order, in batches of `batch` (None: the run's batch size).

    With `second`, each step also gets a batch of that stream (as `batch.second`), which starts over when it runs out.
    """

    index: Tensor | None = None
    batch: int | None = None
    second: Tensor | None = None
    second_batch: int | None = None


@dataclass(frozen=True)
class Task:
    """What a method may know: the given labels y (N,), the number of classes, and how to make a fresh network."""

    y: Tensor
    classes: int
    build: Callable[[], nn.Module]


class Method(nn.Module):
    """The base of every method: one network trained by `loss`. Override what differs."""

    Config: ClassVar[type[Settings]]
    summary: ClassVar[str]
    tables: tuple[str, ...] = ()
    """Buffers (N, ...), dotted if a part's, of which a step sets the rows `batch.i`; processes exchange those rows."""
    y: Tensor

    def __init__(self, cfg: Any, task: Task) -> None:
        super().__init__()
        self.cfg = cfg  # read at use: population based training replaces it during a run
        self.classes = task.classes
        self.register_buffer("y", task.y, persistent=False)

    def views(self, t: Progress) -> Plan:
        """How many views of each example the step at t needs; of `cfg`, t and what `epoch_start` left (made ahead)."""
        return Plan()

    def moment(self, t: Progress) -> Moment:
        """t as the schedules of learning rate, weight decay and resolution see it; a function of the state."""
        return t

    def pace(self, t: Progress) -> float:
        """What the learning rate is multiplied by at t; a function of the state, as a step is."""
        return 1.0

    def price(self, t: Progress) -> float:
        """As how many steps that at t counts in a run of `train.steps`: above one where a method adds views by itself.

        At least one, and like `views` a function of `cfg`, t and what `epoch_start` left.
        """
        return 1.0

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        """Refit, filter or relabel before an epoch; what it returns is journalled. Must leave its result in buffers."""
        return {}

    def passes(self, t: Progress) -> Sequence[Pass]:
        """Who is seen in this epoch; a function of the state `epoch_start` left, so that a resumed epoch goes on."""
        return [Pass()]

    def loss(self, batch: Batch, t: Progress) -> Terms:
        """The objective and its parts."""
        raise NotImplementedError

    def step(self, batch: Batch, t: Progress, update: Update) -> Terms:
        """One optimiser step; override for trainable labels, meta-gradients or several updates."""
        terms = self.loss(batch, t)
        update(torch.as_tensor(terms["loss"]))
        return terms

    def after_step(self, t: Progress) -> None:
        """Called after each optimiser step."""

    def running(self) -> Iterator[nn.Module]:
        """Modules whose buffers are running means over batches; several processes average them after each step."""
        return (m for m in self.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm))

    def predict(self, x: Tensor) -> Tensor:
        """The logits that are reported, selected on and exported."""
        raise NotImplementedError

    def networks(self) -> dict[str, Predict]:
        """Further networks worth evaluating by name, such as the student beside the teacher."""
        return {}

    def trust(self, sweep: Sweep) -> Tensor:
        """How much each given label is believed, (N,) in 0..1; by default its predicted probability."""
        return sweep(self.predict).softmax(1).gather(1, self.y[:, None]).squeeze(1)
