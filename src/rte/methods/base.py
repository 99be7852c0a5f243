"""What a method is: one `nn.Module` whose functions the trainer calls at fixed times.

The trainer owns the loop:

    method.epoch_start(t, sweep)                        # once per epoch
    for each in method.passes(t):                       # usually one: all examples
        for batch in loader(each, method.views(t)):
            method.clock(t)                             # learning rate of the step, and what its schedules go by
            method.step(batch, t, update)               # loss, backward, optimiser
            method.after_step(t)                        # move the moving average
    method.epoch_end(t, sweep)                          # before an evaluation

`state_dict()` is the checkpoint: networks, teachers, and per-example tables, which are buffers addressed by `batch.i`.
Randomness inside a step (dropout, mixup) may be drawn from torch's global generator: the trainer seeds it before each
step from (seed, step), so that a resumed run draws the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from rte.errors import ConfigError
from rte.parts.losses import probabilities
from rte.parts.noise_rate import NoiseEstimate
from rte.parts.schedules import Moment
from rte.settings import Settings
from rte.views.batch import Batch, ViewPlan

Terms: TypeAlias = dict[str, Tensor | float]
"""Named parts of an objective; "loss" is what is minimised, the others are journalled beside it."""

Predict: TypeAlias = Callable[[Tensor], Tensor]
"""x (B, C, H, W) -> logits (B, K)."""


class Sweep(Protocol):
    """A network -> its output (N, D) on the un-augmented training set, in index order, evaluation mode, no gradient.

    `sweep(net)` gives logits, `sweep(net.features)` features. `reported`: as results are, from mirror images too where
    the run predicts from them (`views.mirror`).
    """

    def __call__(self, predict: Predict, *, reported: bool = False) -> Tensor: ...


class Update(Protocol):
    """Backward of a scalar, and one optimiser step. Parameters that the loss does not depend on stay as they are.

    A step may make several updates. Where a batch is computed in pieces (`train.accumulate`, several processes), each
    update waits for all pieces, so that the k-th one has the gradient of the whole batch.
    """

    def __call__(self, loss: Tensor) -> None: ...


@dataclass(frozen=True)
class Progress:
    """Where in the run a step is: step j of J of this epoch, in pass number `pass_number`; `step` counts over the run.

    `done` is the share of the run that lies behind, where that is no matter of epochs; `lr` is the learning rate of the
    step. How long a run of a given time will be is only foreseen, so `epochs` may change in it.
    """

    epoch: int
    epochs: int
    j: int = 0
    J: int = 1
    step: int = 0
    pass_number: int = 0
    done: float | None = None
    lr: float = 0.0

    @property
    def fraction(self) -> float:
        """k/K of the paper: the share of the run that lies behind."""
        return (self.epoch * self.J + self.j) / (self.epochs * self.J) if self.done is None else self.done


class Clock(NamedTuple):
    """What the schedules of learning rate, weight decay and resolution go by, and a factor of the learning rate."""

    moment: Moment
    rate: float = 1.0


@dataclass(frozen=True)
class Pass:
    """Some examples to go through once, in random order, in batches of `batch` (None: the run's batch size).

    An example that stands in `index` several times comes as often, with other views each time. With `second`, each step
    also gets a batch of that stream (as `batch.second`), which starts over when it runs out.
    """

    index: Tensor | None = None
    batch: int | None = None
    second: Tensor | None = None
    second_batch: int | None = None


@dataclass(frozen=True)
class Group:
    """Parameters with settings of their own: factors of the run's learning rate and weight decay, and a momentum."""

    parameters: Sequence[nn.Parameter]
    rate: float = 1.0
    decay: float = 1.0
    momentum: float | None = None


@dataclass(frozen=True)
class Task:
    """What a method may know: the given labels y (N,), the number of classes, and how to make fresh networks.

    `build(k)` makes the k-th network: another start for each k, the same in every process and after a resume. `trusted`
    are the indices of examples whose labels are known to be right; empty unless `train.trusted` asks for some.
    `loading`: a trained state is loaded next, so what it holds need not be read from files again.
    """

    y: Tensor
    classes: int
    build: Callable[..., nn.Module]
    trusted: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    loading: bool = False


Need: TypeAlias = Literal["noise rate", "matrix", "trusted examples", "hidden layers"]
"""What a method has to be told, or given. Rate and matrix are estimated in the run where nobody knows them.

"hidden layers": it acts on how features are learnt, so a network whose features are its input is refused.
"""


class Method(nn.Module):
    """The base of every method: one network trained by `loss`. Override what differs."""

    Config: ClassVar[type[Settings]]
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    """Who published it, and when: "Zhang & Sabuncu, 2018"."""
    reproduced: ClassVar[bool] = False
    """Whether its published numbers were reached here, at their size."""
    needs: ClassVar[tuple[Need, ...]] = ()
    tables: tuple[str, ...] = ()
    """Buffers (N, ...), by dotted name, of which a step sets the rows `batch.i`; processes exchange those rows."""
    y: Tensor

    def __init__(self, cfg: Any, task: Task) -> None:
        super().__init__()
        self.cfg = cfg  # read at use: population based training replaces it during a run
        self.classes = task.classes
        self.register_buffer("y", task.y, persistent=False)

    # ---- asked before and during an epoch

    def views(self, t: Progress) -> ViewPlan:
        """How many views of each example the step at t needs; of `cfg`, t and what `epoch_start` left (made ahead)."""
        return ViewPlan()

    def clock(self, t: Progress) -> Clock:
        """What schedules see in the step at t, and a factor of the learning rate; a function of the state."""
        return Clock(t)

    def cost(self, t: Progress) -> float:
        """Forward passes of a network that an example of a batch costs in the step at t; a backward pass counts as two.

        An example of the second stream counts for as much as its views do against the first one's.
        """
        return 3.0 * self.views(t).total

    def groups(self) -> Sequence[Group]:
        """The parameters that the optimiser moves; by default all that require a gradient, alike."""
        return [Group([p for p in self.parameters() if p.requires_grad])]

    def epoch_start(self, t: Progress, sweep: Sweep) -> Terms:
        """Refit, filter or relabel before an epoch; what it returns is journalled. Must leave its result in buffers.

        Of several processes the first one alone calls it, and sends its state to the others.
        """
        return {}

    def restarted(self, t: Progress) -> Iterable[nn.Parameter]:
        """Parameters whose optimiser state begins anew with the epoch at t; asked after `epoch_start`."""
        return ()

    def passes(self, t: Progress) -> Sequence[Pass]:
        """Who is seen in this epoch; a function of the state `epoch_start` left, so that a resumed epoch goes on."""
        return [Pass()]

    # ---- a step

    def loss(self, batch: Batch, t: Progress) -> Terms:
        """The objective and its parts."""
        raise NotImplementedError

    def step(self, batch: Batch, t: Progress, update: Update) -> Terms:
        """One step; override for trainable labels, meta-gradients or several updates."""
        terms = self.loss(batch, t)
        if not isinstance(terms, dict) or "loss" not in terms or torch.as_tensor(terms["loss"]).ndim:
            raise ConfigError(
                f"{type(self).__name__}.loss must return a dict of numbers with the key 'loss', each a mean over the "
                'batch; for example {"loss": losses.mean()}.'
            )
        update(torch.as_tensor(terms["loss"]))
        return terms

    def after_step(self, t: Progress) -> None:
        """Called after each step."""

    def running(self) -> Iterator[nn.Module]:
        """Modules whose buffers are running means over batches; several processes average them after each step.

        By default those of batch norm, and estimates of the noise.
        """
        return (m for m in self.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm | NoiseEstimate))

    # ---- the end of an epoch, and of the run

    def epoch_end(self, t: Progress, sweep: Sweep) -> Terms:
        """Fit what is fitted after training, such as a head, before an evaluation; as `epoch_start`."""
        return {}

    def predict(self, x: Tensor) -> Tensor:
        """The logits that are reported, selected on and exported."""
        raise NotImplementedError

    def networks(self) -> dict[str, Predict]:
        """Further networks worth evaluating by name, such as the student beside the teacher."""
        return {}

    def trust(self, sweep: Sweep) -> Tensor:
        """How much each given label is believed, (N,) in 0..1; by default its predicted probability."""
        return probabilities(sweep(self.predict)).gather(1, self.y[:, None]).squeeze(1)
