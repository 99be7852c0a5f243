"""One run in several processes: torchrun starts them, and each computes its share of every batch.

The batch of a step is the same as in one process; it is cut into contiguous shares. Gradients are averaged by hand,
with one all-reduce over all of them, instead of by a wrapper around each network: this serves methods with two networks
and with update steps of their own alike, and leaves the names in a checkpoint as they are.
"""

from __future__ import annotations

import atexit
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from rte.errors import TrainingError

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

PATIENCE = timedelta(hours=2)
"""How long processes wait for one another: the first evaluates alone, which may take longer than the usual minutes."""

MEETING = timedelta(minutes=10)
"""How long the first processes to arrive wait for the last."""


@dataclass(frozen=True)
class World:
    """Which of how many processes this is; `store` is what torchrun keeps for them, also when it restarts them."""

    rank: int = 0
    size: int = 1
    store: Store | None = None

    @classmethod
    def join(cls) -> World:
        """The processes that torchrun started together, or this one alone."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
            return cls()
        return _joined()

    def claim(self, folder: Path) -> None:
        """Note that this run begins in a folder."""
        if self.store is not None:
            self.store.set(f"rte/claimed/{folder.resolve()}", "")

    def claimed(self, folder: Path) -> bool:
        """Whether this run has begun in the folder already, before torchrun restarted its processes."""
        return self.store is not None and bool(self.store.check([f"rte/claimed/{folder.resolve()}"]))

    @property
    def first(self) -> bool:
        """Whether this process writes, evaluates and talks."""
        return self.rank == 0

    def slice(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of a batch."""
        return np.array_split(index, self.size)[self.rank]

    def average(self, tensors: Iterable[Tensor], weight: float = 1.0) -> None:
        """Replace each tensor by its mean over the processes, in one message; `weight` scales this one's part."""
        parts = list(tensors)
        if self.size == 1 or not parts:
            return
        flat = torch.cat([part.reshape(-1).float() for part in parts]) * (weight / self.size)
        dist.all_reduce(flat)
        place = 0
        for part in parts:
            part.copy_(flat[place : place + part.numel()].view_as(part))
            place += part.numel()

    def any(self, claims: list[bool]) -> list[bool]:
        """For each claim, whether any process makes it."""
        if self.size == 1:
            return claims
        votes = torch.tensor(claims, dtype=torch.float32)  # on the CPU: no process waits for its GPU here
        dist.all_reduce(votes, op=dist.ReduceOp.MAX)
        return [bool(vote) for vote in votes]

    def first_word(self, word: str) -> str:
        """Of what the processes say, the first that is not empty."""
        words = [word] * self.size
        if self.size > 1:
            dist.all_gather_object(words, word)
        return next(filter(None, words), "")

    def told(self, values: Sequence[float]) -> list[float]:
        """The first process's numbers, in all of them; the others give as many."""
        if self.size == 1:
            return list(values)
        message = torch.tensor(list(values), dtype=torch.float64)
        dist.broadcast(message, 0)
        return [float(value) for value in message]

    def give(self, module: nn.Module) -> None:
        """Make a module's state that of the first process, where a decision may have changed anything of it."""
        if self.size == 1:
            return
        state = module.state_dict()
        forms: list[Any] = [{name: (tuple(value.shape), value.dtype) for name, value in state.items()}]
        dist.broadcast_object_list(forms, 0)
        given = {}
        for name, (shape, dtype) in forms[0].items():
            known = state[name]
            mine = known.clone(memory_format=torch.contiguous_format)  # memory is sent as it lies, channels last or not
            given[name] = mine if self.first else torch.empty(shape, dtype=dtype, device=known.device)
            dist.broadcast(given[name].view(-1).view(torch.uint8), 0)  # bytes: gloo does not know every type
        if not self.first:
            module.load_state_dict(given)

    def gather_rows(self, table: Tensor, rows: Tensor) -> None:
        """Make `table[rows]`, which each process has set for rows of its own, the same in all of them."""
        if self.size == 1:
            return
        counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([len(rows)], device=rows.device))
        longest = int(max(count.item() for count in counts))
        width = table[0].numel()
        message = torch.zeros(longest, width + 1, dtype=torch.float64, device=rows.device)
        message[: len(rows), 0] = rows.double()
        message[: len(rows), 1:] = table[rows].reshape(len(rows), width).double()
        messages = [torch.empty_like(message) for _ in range(self.size)]
        dist.all_gather(messages, message)
        for count, other in zip(counts, messages, strict=True):
            filled = other[: int(count)]
            table[filled[:, 0].long()] = filled[:, 1:].to(table.dtype).view(-1, *table.shape[1:])

    def wait(self) -> None:
        """Until all processes are here; nccl's own barrier would have to guess which GPU is whose."""
        self.any([False])


@cache
def _joined() -> World:
    """Connect this process with the others, once."""
    if dist.is_initialized():  # by the program that calls
        return World(dist.get_rank(), dist.get_world_size())
    store, rank, size = next(dist.rendezvous("env://", timeout=MEETING))  # type: ignore[attr-defined]
    meeting = dist.PrefixStore(f"meeting-{meet(store, rank, size)}", store)  # type: ignore[attr-defined]
    if size > 1:
        nccl = torch.cuda.is_available() and dist.is_nccl_available()
        backend = "cpu:gloo,cuda:nccl" if nccl else "gloo"  # each tensor by where it lies
        dist.init_process_group(backend, store=meeting, rank=rank, world_size=size, timeout=PATIENCE)
        if not nccl:
            atexit.register(dist.destroy_process_group)  # else gloo's threads may abort a process that has ended well
    return World(rank, size, store)


def meet(store: Store, rank: int, size: int) -> int:
    """How many times the processes of this run have met, this time included: the same number in all of them.

    torchrun keeps one store through all restarts, and in it the addresses of processes that are dead: whoever comes
    early would find those, and fail to connect. So each meeting needs keys of its own. torchrun's count of restarts
    will not do for them, since only hosts on which a process failed count one. Instead the first process counts, and
    tells each of the others in a letter box that no process before it has had.
    """
    if rank:
        box = f"rte/box/{secrets.token_hex(16)}"
        store.set(f"rte/waiting/{rank}", box)
        number = int(store.get(box))
        store.set(f"rte/met/{number}/{rank}", "")
        return number
    number, expected = int(store.add("rte/meetings", 1)), set(range(1, size))
    until = time.monotonic() + MEETING.total_seconds()
    while expected := {other for other in expected if not store.check([f"rte/met/{number}/{other}"])}:
        if time.monotonic() > until:
            raise TrainingError(f"process {min(expected)} of {size} did not come; see what torchrun says of it.")
        for other in expected:
            if store.check([f"rte/waiting/{other}"]):  # perhaps the word of a dead one, until the living one comes
                store.set(store.get(f"rte/waiting/{other}").decode(), str(number))
        time.sleep(0.02)
    return number
