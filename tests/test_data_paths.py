"""Many paths in little memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from rte.data._paths import Paths


def test_paths_come_back_as_they_were() -> None:
    names = ["a.png", "", "b/ä ö.jpg", "c/🙂 'x'.png", "latin \udce4.png"]  # the last is no UTF-8 on the disk
    kept = Paths([Path("x/y.png"), *names])
    assert list(kept) == ["x/y.png", *names]
    assert (kept[-1], kept[1:3], len(kept)) == (names[-1], names[:2], 6)
    for k in (6, -7):
        with pytest.raises(IndexError):
            kept[k]
    assert list(Paths([])) == []


def test_they_take_little_more_than_their_letters() -> None:
    tracemalloc.start()
    kept = Paths(f"images/class{k % 1000:03d}/{k:06d}.jpg" for k in range(20_000))
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < 20_000 * (len(kept[0]) + 16)
