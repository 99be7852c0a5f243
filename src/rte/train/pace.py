"""Runs by the clock: progress is the time used over the time given.

The clock is not read in every step. A run goes through segments; each has a pace, the progress that a step is worth,
such that the run would end on time if the machine kept its present speed. A segment is written down before its first
step. The written path, not the clock, is what the run goes by, so that it is resumed and repeated exactly, whatever the
machine does the next time. A method sees nothing of all this but the share of the run that lies behind.
"""

from __future__ import annotations

import json
import math
import os
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from rte.errors import CheckpointError, UserError
from rte.train.distributed import World
from rte.train.timeline import Place

WARM = 2
"""Steps of a process that are not timed: they compile, and fill caches."""
STRETCH, LONGEST = 0.1, 5.0
"""A segment lasts this share of the time that is left, and at most so many seconds."""
AHEAD = 8
"""Steps of the first segment, before which nothing is known of the machine's speed."""
RECENT = 3.0
"""Seconds over which that speed is taken."""
EVALUATING = 0.05
"""Share of the time used that evaluations before the end may take."""
SAMPLES = 50
"""Moments of what is left of a run at which the cost of a step is looked up."""


@dataclass(frozen=True)
class Segment:
    """From `step` on, at which the share `done` of the run lies behind, each step is worth `pace`; until the next one.

    `epochs` is the foreseen length of the run, `elapsed` are the seconds used when this was decided. With `done` = 1
    the run is over.
    """

    step: int
    done: float
    pace: float
    until: int
    epochs: int
    elapsed: float

    @property
    def last(self) -> bool:
        return self.done >= 1.0


class Course:
    """Segments, and for each finished epoch whether it was evaluated: in memory, and in a file if there is one."""

    def __init__(self, file: str | os.PathLike[str] | None, *, writes: bool) -> None:
        self.segments: list[Segment] = []
        self.looks: dict[int, bool] = {}
        if file is not None and os.path.exists(file):
            self._read(os.fspath(file), mend=writes)
        self._starts = [segment.step for segment in self.segments]
        self._file = file if writes else None

    def _read(self, file: str, *, mend: bool) -> None:
        with open(file, "rb") as source:
            whole = source.read().rpartition(b"\n")[0]
        for line in whole.split(b"\n") if whole else []:
            try:
                entry = json.loads(line)
                if "evaluate" in entry:
                    self.looks[int(entry["epoch"])] = bool(entry["evaluate"])
                else:
                    self.segments.append(Segment(**entry))
            except (ValueError, TypeError, KeyError):
                raise CheckpointError(f"{file} is damaged: '{line[:60]!r}' is no entry of a path.") from None
        if mend:  # half a line, left by a kill
            os.truncate(file, len(whole) + bool(whole))

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self._starts.append(segment.step)
        self._write(asdict(segment))

    def look(self, epoch: int, evaluate: bool) -> None:
        self.looks[epoch] = evaluate
        self._write({"epoch": epoch, "evaluate": evaluate})

    def at(self, step: int) -> Segment:
        return self.segments[bisect_right(self._starts, step) - 1]

    def _write(self, entry: dict[str, object]) -> None:
        if self._file is None:
            return
        try:
            with open(self._file, "ab") as out:
                out.write(json.dumps(entry).encode() + b"\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise UserError(
                f"cannot write {os.fspath(self._file)} ({error.strerror}); free space, then `rte resume` the run."
            ) from None


class Foreseen(Protocol):
    """The seconds that all after the last step will take, where so much time is left in all.

    `step` are the seconds of a step now, at full cost: where they change, the machine or the method has.
    """

    def __call__(self, left: float, step: float) -> float: ...

    def evaluated(self, seconds: float) -> None:
        """An evaluation took so long."""
        ...


class ByClock:
    """A run that ends `seconds` after `started`, a time of `clock`; what follows the last step included.

    relative(done): the cost of a step at that share of the run, 1 at its most expensive. A path that is there already
    is followed first. Of several processes the first decides, and the others are told.
    """

    def __init__(
        self,
        seconds: float,
        *,
        started: float,
        course: Course,
        epochs: int,
        every: int,
        world: World,
        closing: Foreseen,
        relative: Callable[[float], float] = lambda done: 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds, self.started, self.course, self.epochs, self.every = seconds, started, course, epochs, every
        self.world, self.closing, self.relative, self.clock = world, closing, relative, clock
        self._follows = bool(course.segments)  # what is done again was paid for the first time
        self._recent: deque[float] = deque()
        self._made = 0  # steps, by this process or the one it goes on from
        self._warm = 0
        self._pause = self._evaluating = self._aside = 0.0

    def begin(self, step: int) -> None:
        """So many steps were made before this process."""
        self._made = step

    # ---- what the trainer asks and tells

    def where(self, place: Place) -> tuple[int, float | None]:
        segment = self._reach(place)
        return segment.epochs, min(1.0, segment.done + (place.step - segment.step) * segment.pace)

    def over(self, place: Place) -> bool:
        return self._reach(place).last

    def evaluates(self, epoch: int) -> bool:
        if epoch not in self.course.looks:
            spent = self._evaluating + self._closing()
            due = self.world.first and epoch % self.every == 0 and spent <= EVALUATING * self.elapsed
            self.course.look(epoch, bool(self.world.told([float(due)])[0]))
        return self.course.looks[epoch]

    def stepped(self, seconds: float) -> None:
        seconds, self._aside = max(0.0, seconds - self._aside), 0.0
        self._made, self._warm = self._made + 1, self._warm + 1
        if self._warm > WARM or not self._recent:
            self._recent.append(seconds)
        if self._warm == WARM + 1:
            self._recent.popleft()  # of the first step, which counts as long as there is no other
        while len(self._recent) > 2 and sum(self._recent) - self._recent[0] > RECENT:
            self._recent.popleft()

    def paused(self, seconds: float) -> None:
        self._pause = seconds

    def evaluated(self, seconds: float) -> None:
        self._evaluating += seconds
        self.closing.evaluated(seconds)

    # ---- the path

    @property
    def elapsed(self) -> float:
        return self.clock() - self.started

    def _closing(self) -> float:
        began = self.clock()
        done = self.course.segments[-1].done if self.course.segments else 0.0
        foreseen = self.closing(self.seconds - self.elapsed, self._step_seconds / self.relative(done))
        self._aside += self.clock() - began  # what it tried out falls into a step, but is none of it
        return foreseen

    @property
    def _step_seconds(self) -> float:
        return sum(self._recent) / len(self._recent) if self._recent else 0.0

    def _reach(self, place: Place) -> Segment:
        """The segment of a step; new ones are decided as far as it takes."""
        course = self.course
        while not course.segments or (place.step >= course.segments[-1].until and not course.segments[-1].last):
            told = self.world.told(self._decide(place) if self.world.first else [0.0] * 5)
            done, pace, until, epochs, elapsed = told
            step = course.segments[-1].until if course.segments else place.step
            course.add(Segment(step, done, pace, int(until), int(epochs), elapsed))
        return course.at(place.step)

    def _decide(self, place: Place) -> Sequence[float]:
        """done, pace, until, epochs and elapsed of the next segment."""
        if not self.course.segments:
            return 0.0, 0.0, place.step + AHEAD, self.epochs, self.elapsed
        before = self.course.segments[-1]
        step, done = before.until, before.done + (before.until - before.step) * before.pace
        if not self._recent and done < 1.0:  # gone on with where the path ends: nothing is known of this machine yet
            steps = min(AHEAD, math.ceil((1.0 - done) / before.pace)) if before.pace else AHEAD
            return done, before.pace, step + steps, before.epochs, before.elapsed + self._last_took()
        if self._follows:
            self.started = self.clock() - before.elapsed - (before.until - before.step) * self._step_seconds
            self._follows = False
        cost = self._step_seconds + self._pause / place.J
        elapsed = self.elapsed
        left = self.seconds - self._closing() - elapsed - (step - self._made) * cost
        if done >= 1.0 or left < cost / 2:
            return 1.0, 0.0, step, place.epoch + bool(place.j), elapsed
        pace = (1.0 - done) * min(1.0, cost / left)
        steps = max(1, min(int(min(STRETCH * left, LONGEST) / cost), math.ceil((1.0 - done) / pace)))
        epochs = math.ceil(place.epoch + (place.j + self._foreseen(done, left / cost)) / place.J)
        return done, pace, step + steps, max(place.epoch + 1, epochs), elapsed

    def _last_took(self) -> float:
        """Seconds of the last segment, at the speed of the one before it."""
        *_, one, two = self.course.segments[:1] + self.course.segments
        return (two.elapsed - one.elapsed) / max(1, two.step - one.step) * (two.until - two.step)

    def _foreseen(self, done: float, steps: float) -> float:
        """How many steps are left where there is time for so many at the present cost: the cost will change."""
        here = self.relative(done)
        later = (self.relative(done + (1.0 - done) * (k + 0.5) / SAMPLES) for k in range(SAMPLES))
        return steps * sum(here / cost for cost in later) / SAMPLES
