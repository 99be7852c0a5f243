"""Pieces of a batch that meet at every update."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from rte.train.lockstep import Unequal, together


def test_one_piece_runs_by_itself() -> None:
    assert together([lambda meet: (meet(), threading.current_thread())[1]]) == [threading.current_thread()]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_pieces_take_turns_in_order_and_meet_at_each_update(size: int) -> None:
    said: list[tuple[int, int]] = []

    def piece(number: int) -> Callable[[Callable[[], None]], int]:
        def run(meet: Callable[[], None]) -> int:
            for update in range(3):
                said.append((update, number))
                meet()
            said.append((3, number))
            return number

        return run

    for _ in range(20):
        said.clear()
        assert together([piece(number) for number in range(size)]) == list(range(size))
        assert said == [(update, number) for update in range(4) for number in range(size)]


@pytest.mark.parametrize("first", [True, False])
def test_an_error_of_one_piece_ends_all_and_is_raised(first: bool) -> None:
    def fails(meet: Callable[[], None]) -> None:
        meet()
        raise KeyError("mine")

    def waits(meet: Callable[[], None]) -> None:
        for _ in range(5):
            meet()

    with pytest.raises(KeyError, match="mine"):
        together([fails, waits] if first else [waits, fails])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rte-piece")]


@pytest.mark.parametrize("counts", [(1, 2), (2, 1), (0, 1), (1, 0)])
def test_pieces_must_make_as_many_updates(counts: tuple[int, int]) -> None:
    def piece(count: int) -> Callable[[Callable[[], None]], None]:
        def run(meet: Callable[[], None]) -> None:
            for _ in range(count):
                meet()

        return run

    with pytest.raises(Unequal):
        together([piece(count) for count in counts])
