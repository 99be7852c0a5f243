"""Batches made ahead of time: threads read, crop and augment the next ones while the network computes."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rte.data.types import Source
from rte.errors import ConfigError
from rte.views.batch import Batch, ViewPlan
from rte.views.viewer import Viewer

T = TypeVar("T")
R = TypeVar("R")
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Request:
    """One batch to come: which examples (B,), which views of them; `second` becomes the batch's second stream.

    `again` (B,): how often each example has come before in this pass; its views are others each time.
    """

    epoch: int
    index: NDArray[np.int64]
    plan: ViewPlan
    stream: int = 0
    second: Request | None = None
    again: NDArray[np.int64] | None = None


class Buffers:
    """Memory for batches, used again as soon as nobody holds the batch that was made in it.

    Fresh memory has to be cleared by the system, which costs as much as a tenth of making the views. Without a lock,
    because the end of a batch may be noticed at any moment, even here.
    """

    def __init__(self, most: int) -> None:
        self._free: deque[Singles] = deque(maxlen=most)

    def take(self, shape: tuple[int, ...]) -> Singles:
        """An array to write to; it must itself be kept for as long as its memory is in use."""
        size = int(np.prod(shape))
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = np.empty(size, np.float32)
        if buffer.size < size:
            buffer = np.empty(size, np.float32)
        array = buffer[:size].reshape(shape)
        weakref.finalize(array, self._free.append, buffer).atexit = False
        return array


class Loader:
    """Views of the examples of `source` with given labels `y`, in batches.

    These come in the order asked for and do not depend on `threads`. At most `ahead` batches are ready or in the
    making. `pin` puts them into page-locked memory, which a GPU reads while it computes.
    """

    def __init__(
        self,
        source: Source,
        y: NDArray[np.int64],
        viewer: Viewer,
        *,
        seed: int,
        threads: int = 1,
        ahead: int = 3,
        pin: bool = False,
    ) -> None:
        if threads < 1 or ahead < 1:
            raise ConfigError(
                f"a loader with {threads} threads and {ahead} batches ahead cannot work; give at least 1 of each."
            )
        self.source, self.y, self.viewer = source, y, viewer
        self.seed, self.threads, self.ahead, self.pin = seed, threads, ahead, pin
        self._buffers = Buffers(ahead + 2)

    def batches(self, requests: Iterable[Request]) -> Iterator[Batch]:
        """The batches asked for. What goes wrong in a thread is raised here; closing the iterator ends the threads."""
        return self._ahead(self._batch, requests)

    def plain(self, batch_size: int) -> Iterator[Tensor]:
        """All examples in order, not augmented, as a network takes them; images are (B, C, H, W) channels_last."""
        starts = range(0, len(self.source), batch_size)
        return self._ahead(self._plain, (np.arange(i, min(i + batch_size, len(self.source))) for i in starts))

    def _ahead(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """work(task) for each task, in order, computed by threads up to `ahead` tasks early."""
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="rte-views")
        coming: deque[Future[R]] = deque()
        try:
            left = iter(tasks)
            coming.extend(pool.submit(work, task) for task in islice(left, self.ahead))
            while coming:
                result = coming.popleft().result()
                coming.extend(pool.submit(work, task) for task in islice(left, 1))
                yield result
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _batch(self, request: Request) -> Batch:
        index, plan = request.index, request.plan
        views = self._memory((plan.total * len(index), *self.viewer.shape))
        self.viewer.render(
            self.viewer.fetch(self.source, index),
            index,
            seed=self.seed,
            epoch=request.epoch,
            plan=plan,
            stream=request.stream,
            again=request.again,
            out=views.numpy(),
        )
        y, i = (torch.from_numpy(np.array(part, np.int64)) for part in (self.y[index], index))
        if self.pin:
            y, i = y.pin_memory(), i.pin_memory()
        second = None if request.second is None else self._batch(request.second)
        return Batch(self.viewer.tensor(views), y, i, plan, second)

    def _plain(self, index: NDArray[np.int64]) -> Tensor:
        views = self._memory((len(index), *self.viewer.shape))
        self.viewer.plain(self.viewer.fetch(self.source, index), out=views.numpy())
        return self.viewer.tensor(views)

    def _memory(self, shape: tuple[int, ...]) -> Tensor:
        # Page-locked memory is left to torch, which knows when the GPU has read it; we would not.
        return torch.empty(shape, pin_memory=True) if self.pin else torch.from_numpy(self._buffers.take(shape))
