"""The state of a search: which intervals are done, and which can start now. No Ray, no files, no clock.

Members train in intervals; the ends of the intervals are the epochs at which members are compared. Synchronous: nobody
goes on from such an epoch before all have reached it. Asynchronous: a member is compared with those that have reached
the epoch before it. Either way like is compared with like: scores of the same epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rte.errors import TrainingError
from rte.search.decide import DIVERGED, exploit, explore, sample
from rte.search.space import Space, Values


@dataclass(frozen=True)
class Interval:
    """An interval to be done: from epoch `start`, and the state `parent` had there, until epoch `until`."""

    member: int
    start: int
    until: int
    parent: int
    source: str | None
    values: Values


@dataclass(frozen=True)
class Record:
    """An interval that is done. `place` holds the state at its end; a diverged member has no score and no state."""

    member: int
    start: int
    until: int
    parent: int
    values: Values
    score: float | None
    place: str
    seconds: float = 0.0

    @property
    def rank(self) -> float:
        """The score to compare by."""
        return DIVERGED if self.score is None else self.score

    def tree(self) -> dict[str, Any]:
        return asdict(self)


class Population:
    """All members of a search."""

    def __init__(
        self,
        space: Space,
        *,
        size: int,
        interval: int,
        epochs: int,
        seed: int,
        asynchronous: bool = False,
        records: Iterable[Record] = (),
    ) -> None:
        self.space, self.size, self.interval, self.epochs, self.seed = space, size, interval, epochs, seed
        self.asynchronous = asynchronous
        self.rungs: dict[int, dict[int, Record]] = {}  # epoch -> member -> what it did before that epoch
        self.running: dict[int, Interval] = {}
        for record in records:
            self.add(record)

    # ---- what happens

    def next_interval(self) -> Interval | None:
        """The next interval that can start now, of the member furthest behind; it counts as running from here."""
        for member in sorted(range(self.size), key=lambda m: (self.reached(m), m)):
            if member not in self.running and (job := self._interval(member)) is not None:
                self.running[member] = job
                return job
        return None

    def add(self, record: Record) -> None:
        """An interval is done."""
        self.running.pop(record.member, None)
        self.rungs.setdefault(record.until, {})[record.member] = record

    def _interval(self, member: int) -> Interval | None:
        start = self.reached(member)
        until = min(start + self.interval, self.epochs)
        if start == self.epochs:
            return None
        if start == 0:
            return Interval(member, 0, until, member, None, sample(self.space, seed=self.seed, member=member))
        rung = self.rungs[start]
        if not self.asynchronous and len(rung) < self.size:
            return None
        scores = {other: record.rank for other, record in rung.items()}
        parent = exploit(scores, member, seed=self.seed, epoch=start)
        heir = rung[parent]
        if heir.score is None:  # diverged, and nobody here yet to inherit from
            if len(rung) == self.size:
                raise TrainingError(
                    f"the loss of every member was no longer finite by epoch {start}; narrow the search, for example "
                    "with --search 'train.lr=[0.00001, 0.02]', or set train.clip=1."
                )
            return None
        values = heir.values
        if parent != member:
            values = explore(self.space, values, seed=self.seed, member=member, epoch=start)
        return Interval(member, start, until, parent, heir.place, values)

    # ---- what is known

    def reached(self, member: int) -> int:
        """The epoch a member has come to."""
        return max((epoch for epoch, rung in self.rungs.items() if member in rung), default=0)

    def latest(self, member: int) -> Record | None:
        """The last interval a member has done."""
        return self.rungs.get(self.reached(member), {}).get(member)

    @property
    def done(self) -> int:
        """How many intervals are done."""
        return sum(len(rung) for rung in self.rungs.values())

    @property
    def total(self) -> int:
        """How many intervals the search consists of."""
        return self.size * -(-self.epochs // self.interval)

    @property
    def finished(self) -> bool:
        return self.done == self.total

    @property
    def needed_from(self) -> int:
        """The states of earlier epochs than this one are of no use any more."""
        return min(self.reached(member) for member in range(self.size))

    def winner(self) -> int:
        """The member with the best score at the end; of equal ones, the one with the lowest number."""
        last = self.rungs[self.epochs]
        member = max(sorted(last), key=lambda m: last[m].rank)
        if last[member].score is None:
            raise TrainingError(
                "the loss of every member was no longer finite in the last interval; narrow the search, for example "
                "with --search 'train.lr=[0.00001, 0.02]', or set train.clip=1."
            )
        return member

    def lineage(self, member: int) -> list[Record]:
        """The intervals that led to a member's present state, oldest first."""
        chain: list[Record] = []
        epoch = self.reached(member)
        while epoch:
            record = self.rungs[epoch][member]
            chain.append(record)
            member, epoch = record.parent, record.start
        return chain[::-1]
