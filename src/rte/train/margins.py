"""What training has seen of each given label: margins of the method's own forward passes, so that they cost nothing.

margin of example i = logit of its given label - largest logit of any other class

Whenever a network of the method gets the first weak views of a batch as they are, the margins of its output are added
to the sums of those examples: of students, teachers and each of several networks alike. So are the outputs of a sweep.
They are kept by the part of the run, because early ones were made before a wrong label could be memorised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rte.parts.schedules import Moment
from rte.train.distributed import World
from rte.train.order import Slot
from rte.views.batch import Batch

PARTS = 8
"""The run is cut into so many equal parts, and each has sums of its own."""
MARK = "is_classifier"


def mark(net: nn.Module) -> nn.Module:
    """Note that a module is a whole network, x (B, ...) -> logits (B, K); copies of it are too."""
    setattr(net, MARK, True)
    return net


def margin(logits: Tensor, y: Tensor) -> Tensor:
    """(B,) from logits (B, K): the given label's logit minus the largest other one."""
    given = logits.gather(1, y[:, None])
    others = logits.scatter(1, y[:, None], -torch.inf)
    return given.squeeze(1) - others.amax(1)


class Margins(nn.Module):
    """`table` (N, 2, PARTS): sums of margins, and how many there were, by part of the run.

    Its state belongs into the checkpoint; a resumed run goes on with the same sums.
    """

    table: Tensor

    def __init__(self, method: nn.Module, n: int, classes: int, device: torch.device) -> None:
        super().__init__()
        self.classes = classes
        self.register_buffer("table", torch.zeros(n, 2, PARTS, device=device))
        self._now = threading.local()  # pieces of a batch take turns, each in a thread of its own
        for net in method.modules():
            if getattr(net, MARK, False):
                saw: Any = self._saw
                if getattr(net, "_compiled_call_impl", None) is not None:
                    saw = torch.compiler.disable(saw)  # type: ignore[no-untyped-call]
                net.register_forward_hook(saw)

    def __deepcopy__(self, memo: dict[int, Any]) -> Margins:
        """A copy of a network that is watched reports here too."""
        return self

    @contextmanager
    def watching(self, batch: Batch, t: Moment) -> Iterator[None]:
        """Within, networks are computing a step on `batch`."""
        self._now.batches = [part for part in (batch, batch.second) if part is not None]
        self._now.part = part_of(t)
        try:
            yield
        finally:
            self._now.batches = []

    def _saw(self, net: nn.Module, args: Any, out: Any) -> None:
        batches = getattr(self._now, "batches", ())
        if not batches or not args or not isinstance(out, Tensor) or out.ndim != 2 or out.shape[1] != self.classes:
            return
        x = args[0]
        for batch in batches:
            if len(x) >= len(batch) and x.shape[1:] == batch.views.shape[1:] and x.data_ptr() == batch.views.data_ptr():
                self._add(out[: len(batch)], batch.y, batch.i, self._now.part)

    def seen(self, t: Moment) -> bool:
        """Whether any example was seen in this part of the run, or in the one before it."""
        last = part_of(t)
        return bool(self.table[:, 1, max(0, last - 1) : last + 1].any())

    def swept(self, logits: Tensor, y: Tensor, t: Moment) -> Tensor:
        """Note, and return, logits (N, K) of all examples, in index order; any other output is left alone."""
        if logits.ndim == 2 and logits.shape[1] == self.classes:
            self._add(logits, y, torch.arange(len(y), device=y.device), part_of(t))
        return logits

    def look(self, t: Moment, world: World, sweep: Callable[[], Tensor]) -> None:
        """Sweep, for methods that never look at the weak views themselves."""
        if self.seen(t):
            return
        if world.first:
            sweep()
        world.give(self)

    def give(self, world: World, method: nn.Module) -> None:
        """Send the method and what was seen from the first process to the others."""
        for state in (method, self):
            world.give(state)

    def gather(self, world: World, slots: Sequence[Slot]) -> None:
        """Exchange what the processes have seen of the examples of a step."""
        for slot in slots if world.size > 1 else ():
            for index in (slot.index, slot.second):
                if index is not None:
                    world.gather_rows(self.table, torch.from_numpy(index).to(self.table.device))

    @torch.no_grad()
    def _add(self, logits: Tensor, y: Tensor, i: Tensor, part: int) -> None:
        found = margin(logits.detach().float(), y)
        news = torch.stack([found, torch.ones_like(found)], 1)
        places = torch.full_like(i, part)
        # in place and summed, also where an example stands in the batch twice
        self.table.transpose(1, 2).index_put_((i, places), news, accumulate=True)


def part_of(t: Moment) -> int:
    """The part of the run that a moment is in."""
    return min(PARTS - 1, int(PARTS * t.fraction))
