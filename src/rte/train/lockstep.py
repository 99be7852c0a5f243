"""Several pieces of one batch that go through a step together: each waits at its k-th update for the others.

A step is written as if it had the whole batch: it computes a loss, updates, perhaps computes another one with the new
weights, and updates again. Where the batch is cut into pieces to save memory, the pieces take turns: one computes until
its update, which adds its gradient to the others'; the last one makes the optimiser's step, and all go on. One thread
runs at any moment, always in the same order, so the outcome is a function of the state as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

R = TypeVar("R")


class Unequal(Exception):
    """One piece made an update that another did not."""


class Turns:
    """Hands the turn from piece to piece; each calls `meet` when it waits for the others at an update."""

    def __init__(self, size: int) -> None:
        self.size, self.turn = size, 0
        self.updates = [0] * size
        self.finished: set[int] = set()
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    def wait(self, piece: int) -> None:
        """Until it is this piece's turn."""
        with self.changed:
            self.changed.wait_for(lambda: self.turn == piece or self.error is not None)
            if self.error is not None:
                raise Unequal from self.error

    def meet(self, piece: int) -> None:
        """Give the turn away, until all others have met here too."""
        self.updates[piece] += 1
        self._compare(piece)
        self._pass_on(piece)
        self.wait(piece)
        self._compare(piece)

    def finish(self, piece: int, error: BaseException | None) -> None:
        """This piece is done, or has failed."""
        with self.changed:
            self.finished.add(piece)
            self.error = self.error or error
        self._pass_on(piece)

    def _pass_on(self, piece: int) -> None:
        with self.changed:
            self.turn = (piece + 1) % self.size
            self.changed.notify_all()

    def _compare(self, piece: int) -> None:
        for other in self.finished:
            if self.updates[other] < self.updates[piece]:
                raise Unequal(f"piece {piece} of a batch makes more updates than piece {other}; all must make as many")


def together(pieces: Sequence[Callable[[Callable[[], None]], R]]) -> list[R]:
    """Run the pieces in turns; each is given what it has to call at every update. Raises the first error of any."""
    if len(pieces) == 1:
        return [pieces[0](lambda: None)]
    turns = Turns(len(pieces))
    results: dict[int, Any] = {}

    def run(number: int) -> None:
        try:
            turns.wait(number)
            results[number] = pieces[number](lambda: turns.meet(number))
        except BaseException as error:
            turns.finish(number, error)
        else:
            turns.finish(number, None)

    threads = [threading.Thread(target=run, args=(number,), name=f"rte-piece-{number}") for number in range(turns.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if turns.error is not None:
        raise turns.error
    return [results[number] for number in range(turns.size)]
