"""The loader: batches in order, made ahead, the same with any number of threads, which end when they should."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rte.data.types import ArrayImages
from rte.errors import ConfigError, DataError
from rte.views.batch import ViewPlan
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.loader import Buffers, Loader, Request

PIXELS = np.random.default_rng(0).integers(0, 256, (50, 8, 6, 3), dtype=np.uint8)
Y = np.arange(50) % 7
ENGINE = ViewEngine(ViewConfig(), mean=(0.5,) * 3, std=(0.2,) * 3, size=(8, 6), channels=3)


class Troubled(ArrayImages):
    """Images of which one cannot be read."""

    def fetch(self, index: NDArray[np.int64]) -> Any:
        if 33 in index:
            raise DataError("photos/cat.jpg is cut off after 12 bytes; replace or remove it.")
        return super().fetch(index)


def loader(images: ArrayImages | None = None, **options: Any) -> Loader:
    return Loader(images or ArrayImages(PIXELS), Y, ENGINE, seed=4, **options)


def requests(n: int = 10, plan: ViewPlan = ViewPlan(1, 2)) -> Iterator[Request]:
    order = np.random.default_rng(1).permutation(50)
    for k in range(n):
        yield Request(epoch=2, index=order[5 * k : 5 * k + 5], plan=plan)


def workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rte-views")]


def test_batches_hold_views_labels_and_indices_in_order() -> None:
    order = np.random.default_rng(1).permutation(50)
    got = list(loader().batches(requests()))
    assert len(got) == 10
    np.testing.assert_array_equal(np.concatenate([batch.i.numpy() for batch in got]), order)
    np.testing.assert_array_equal(np.concatenate([batch.y.numpy() for batch in got]), Y[order])
    for k, batch in enumerate(got):
        index = order[5 * k : 5 * k + 5]
        expected = ENGINE.render(PIXELS[index], index, seed=4, epoch=2, plan=ViewPlan(1, 2))
        np.testing.assert_array_equal(batch.views.permute(0, 2, 3, 1).numpy(), expected)
        np.testing.assert_array_equal(batch.strong(1).permute(0, 2, 3, 1).numpy(), expected[10:])
        assert batch.y.dtype == batch.i.dtype == torch.int64


def test_views_need_no_copy_to_be_channels_last() -> None:
    batch = next(loader().batches(requests()))
    assert batch.views.shape == (15, 3, 8, 6)
    assert batch.views.is_contiguous(memory_format=torch.channels_last)
    again = batch.views.contiguous(memory_format=torch.channels_last)
    assert again.data_ptr() == batch.views.data_ptr()
    gc.collect()


def test_threads_change_nothing() -> None:
    one, three = (list(loader(threads=n, ahead=4).batches(requests())) for n in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert torch.equal(a.views, b.views)
        assert torch.equal(a.i, b.i)


def test_a_second_stream_has_its_own_examples_plan_and_draws() -> None:
    index = np.arange(5)
    second = Request(1, index, ViewPlan(2, 0), stream=1)
    batch = next(loader().batches([Request(1, index, ViewPlan(1, 0), second=second)]))
    assert batch.second is not None
    assert batch.second.views.shape[0] == 10
    assert batch.second.second is None
    assert not torch.equal(batch.second.weak(0), batch.weak(0))


def test_plain_gives_every_image_once_in_order() -> None:
    parts = list(loader(threads=2).plain(16))
    assert [len(part) for part in parts] == [16, 16, 16, 2]
    whole = torch.cat(parts)
    np.testing.assert_array_equal(whole.permute(0, 2, 3, 1).numpy(), ENGINE.plain(PIXELS))
    assert parts[0].is_contiguous(memory_format=torch.channels_last)


def test_no_more_than_ahead_are_asked_for_early() -> None:
    asked = 0

    def counted() -> Iterator[Request]:
        nonlocal asked
        for request in requests():
            asked += 1
            yield request

    batches = loader(ahead=2, threads=2).batches(counted())
    assert asked == 0
    for k in range(8):
        next(batches)
        assert asked == k + 3
    batches.close()  # type: ignore[attr-defined]


def test_threads_end_with_the_last_batch() -> None:
    assert not workers()
    batches = loader(threads=2).batches(requests())
    next(batches)
    assert workers()
    assert len(list(batches)) == 9
    assert not workers()


def test_threads_end_when_the_iterator_is_closed_or_forgotten() -> None:
    batches = loader(threads=2).batches(requests())
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not workers()
    batches = loader(threads=2).batches(requests())
    next(batches)
    del batches
    gc.collect()
    assert not workers()


def test_threads_end_when_the_consumer_fails() -> None:
    def train() -> None:
        for _ in loader(threads=2).batches(requests()):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    gc.collect()
    assert not workers()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_fails_in_a_thread_is_raised_to_the_consumer(threads: int) -> None:
    batches = loader(Troubled(PIXELS), threads=threads).batches(requests())
    order = np.random.default_rng(1).permutation(50)
    before = int(np.flatnonzero(order == 33)[0]) // 5
    assert before > 0
    for _ in range(before):
        next(batches)
    with pytest.raises(DataError, match=r"photos/cat.jpg is cut off"):
        next(batches)
    assert not workers()
    with pytest.raises(DataError, match=r"photos/cat.jpg is cut off"):
        list(loader(Troubled(PIXELS), threads=threads).plain(10))


def test_a_failing_list_of_requests_is_raised_and_ends_the_threads() -> None:
    def broken() -> Iterator[Request]:
        yield from requests(2)
        raise KeyError("plan")

    with pytest.raises(KeyError):
        list(loader(threads=2, ahead=1).batches(broken()))
    assert not workers()


def test_batches_are_made_while_the_consumer_works() -> None:
    made = []

    class Watched(ArrayImages):
        def fetch(self, index: NDArray[np.int64]) -> Any:
            made.append(len(index))
            return super().fetch(index)

    batches = loader(Watched(PIXELS), ahead=3).batches(requests())
    next(batches)
    end = time.monotonic() + 20
    while len(made) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(made) == 4
    batches.close()  # type: ignore[attr-defined]


def test_memory_is_used_again_only_when_its_batch_is_gone() -> None:
    feeding = loader(ahead=1)
    kept = [batch.views for batch in feeding.batches(requests())]
    assert len({views.data_ptr() for views in kept}) == 10
    copies = [views.clone() for views in kept]
    places = set()
    for batch in feeding.batches(requests(10)):
        places.add(batch.views.data_ptr())
        del batch
    assert len(places) <= 3
    assert not places & {views.data_ptr() for views in kept}
    assert all(torch.equal(a, b) for a, b in zip(kept, copies, strict=True))


def test_a_view_of_a_batch_keeps_its_memory() -> None:
    buffers = Buffers(2)
    array = buffers.take((4, 3))
    place = array.ctypes.data
    row = torch.from_numpy(array)[1:2]
    del array
    assert buffers.take((4, 3)).ctypes.data != place
    del row
    assert buffers.take((2, 3)).ctypes.data == place


def test_nonsense_is_explained() -> None:
    with pytest.raises(ConfigError, match="0 threads and 3 batches ahead"):
        loader(threads=0)
    with pytest.raises(ConfigError, match="1 threads and 0 batches ahead"):
        loader(ahead=0)


class Photographs(ArrayImages):
    """Larger than the views, and counted: how many are asked for at a time."""

    asked: list[int]

    def fetch(self, index: NDArray[np.int64]) -> Any:
        self.asked.append(len(index))
        return super().fetch(index)


def test_images_of_another_size_are_read_one_by_one_and_give_the_same_views() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (10, 40, 30, 3), dtype=np.uint8)
    images = Photographs(pixels)
    object.__setattr__(images, "asked", [])
    made = Loader(images, np.zeros(10, np.int64), ENGINE, seed=4)
    index = np.arange(10)
    (batch,) = made.batches([Request(epoch=0, index=index, plan=ViewPlan(2, 1))])
    expected = ENGINE.render(list(pixels), index, seed=4, epoch=0, plan=ViewPlan(2, 1))
    np.testing.assert_array_equal(batch.views.permute(0, 2, 3, 1).numpy(), expected)
    (plain,) = made.plain(10)
    np.testing.assert_array_equal(plain.permute(0, 2, 3, 1).numpy(), ENGINE.plain(list(pixels)))
    assert set(images.asked) == {1}


def test_only_page_locked_memory_is_copied_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[bool] = []
    to = torch.Tensor.to
    monkeypatch.setattr(
        torch.Tensor, "to", lambda self, *a, non_blocking=False: (waits.append(not non_blocking), to(self, *a))[1]
    )
    (batch, *_) = loader().batches(requests(1))
    batch.to(torch.device("cpu"))
    assert waits == [True, True, True], "the loader uses this memory again as soon as the batch is gone"
