"""One run in several processes: torchrun starts them, and each computes its share of every batch.

The batch of a step is the same as in one process; it is cut into contiguous shares. Gradients are averaged by hand,
with one all-reduce over all of them, instead of by a wrapper around each network: this serves methods with two networks
and with update steps of their own alike, and leaves the names in a checkpoint as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class World:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls) -> World:
        """The processes that torchrun started together, or this one alone."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        if not dist.is_initialized():
            # the others wait while the first process evaluates, which may take longer than the usual ten minutes
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=timedelta(hours=2))
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def restarted(self) -> bool:
        """Whether torchrun has started these processes anew after one of them died."""
        return self.size > 1 and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0

    @property
    def first(self) -> bool:
        """Whether this process writes, evaluates and talks."""
        return self.rank == 0

    def share(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
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

    def any(self, claims: list[bool], device: torch.device) -> list[bool]:
        """For each claim, whether any process makes it."""
        if self.size == 1:
            return claims
        votes = torch.tensor(claims, dtype=torch.float32, device=device)
        dist.all_reduce(votes, op=dist.ReduceOp.MAX)
        return [bool(vote) for vote in votes]

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
        """Until all processes are here."""
        if self.size > 1:
            dist.barrier()
