"""Runs by the clock, on a made-up machine: its clock moves when it makes a step, evaluates or pauses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rte.errors import CheckpointError
from rte.train.distributed import World
from rte.train.pace import ByClock, Course, Segment
from rte.train.timeline import Place

J = 50
"""Steps of an epoch."""


class Machine:
    """Makes steps of a run by the clock; `speed(now)` says how many times as long everything takes at that time."""

    def __init__(
        self,
        seconds: float,
        step: float = 0.1,
        *,
        speed: Callable[[float], float] = lambda now: 1.0,
        closing: float = 3.0,
        setup: float = 2.0,
        pause: float = 0.0,
        relative: Callable[[float], float] = lambda done: 1.0,
        file: Path | None = None,
        at: int = 0,
    ) -> None:
        self.now, self.step_seconds, self.speed, self.last, self.pause = setup, step, speed, closing, pause
        self.relative, self.near = relative, 3.0
        self.seen = closing
        self.timeline = ByClock(
            seconds,
            started=0.0,
            course=Course(file, writes=True),
            epochs=30,
            every=1000,
            world=World(),
            closing=self,
            relative=relative,
            clock=lambda: self.now,
        )
        self.timeline.begin(at)
        self.step, self.done, self.epochs = at, list[float](), list[int]()

    def __call__(self, left: float, step: float) -> float:
        if left < self.near * self.seen:  # as the closing of a real run, it looks again when the end comes near
            self.near /= 2
            self.seen = self.last * self.speed(self.now)
        return self.seen

    def evaluated(self, seconds: float) -> None: ...

    def pass_time(self, seconds: float) -> None:
        self.now += seconds * self.speed(self.now)

    def run(self, most: int = 10**9, ahead: int = 3) -> Machine:
        """To the end, or for so many steps; batches are asked for `ahead` of time."""
        while True:
            epoch, j = divmod(self.step, J)
            for k in range(j, min(j + 1 + ahead, J)):  # the loader never asks beyond the epoch
                if self.timeline.over(Place(epoch, k, J, epoch * J + k)):
                    break
            place = Place(epoch, j, J, self.step)
            if self.timeline.over(place) or most == 0:
                return self
            epochs, done = self.timeline.where(place)
            assert done is not None
            if j == 0 and self.step:
                before = self.now
                self.pass_time(self.pause)
                self.timeline.paused(self.now - before)
            before = self.now
            self.pass_time(self.step_seconds * self.relative(done))
            self.done.append(done)
            self.epochs.append(epochs)
            self.step, most = self.step + 1, most - 1
            self.timeline.stepped(self.now - before)

    @property
    def end(self) -> float:
        """When everything is over."""
        return self.now + self.last * self.speed(self.now)


SPEEDS: dict[str, Callable[[float], float]] = {
    "steady": lambda now: 1.0,
    "half as fast from the middle on": lambda now: 2.0 if now > 60 else 1.0,
    "twice as fast from the middle on": lambda now: 0.5 if now > 60 else 1.0,
    "half as fast near the end": lambda now: 2.0 if now > 100 else 1.0,
    "slow for half a minute": lambda now: 3.0 if 30 < now < 60 else 1.0,
    "fast and slow, alternating": lambda now: 2.0 if int(now / 7) % 2 else 1.0,
}


@pytest.mark.parametrize("step", [0.004, 0.1, 1.3])
@pytest.mark.parametrize("name", SPEEDS)
def test_the_end_is_kept_whatever_the_machine_does(name: str, step: float) -> None:
    machine = Machine(120.0, step, speed=SPEEDS[name]).run()
    assert machine.end == pytest.approx(120.0, abs=6.0)
    assert machine.step > 20


@pytest.mark.parametrize("name", SPEEDS)
def test_progress_is_the_time_used_over_the_time_given(name: str) -> None:
    machine = Machine(120.0, speed=SPEEDS[name])
    for _ in range(10_000):
        before = machine.now
        machine.run(1)
        if machine.now == before:
            break
        expected = (before - 2.0) / (120.0 - 2.0 - machine.last * machine.speed(machine.now))
        assert machine.done[-1] == pytest.approx(min(1.0, expected), abs=0.1)
    assert all(a <= b for a, b in zip(machine.done, machine.done[1:], strict=False))
    assert machine.done[0] == 0.0
    assert machine.done[-1] > 0.97


def test_pauses_between_epochs_are_foreseen() -> None:
    machine = Machine(120.0, pause=4.0).run()
    assert machine.end == pytest.approx(120.0, abs=6.0)


def test_a_cost_that_rises_as_known_is_foreseen_in_the_number_of_epochs() -> None:
    rising: dict[str, Any] = {"relative": lambda done: 0.4 if done < 0.5 else 1.0}
    machine = Machine(120.0, **rising).run()
    plain = Machine(120.0, relative=lambda done: 1.0).run()
    total = machine.step / J
    assert machine.end == pytest.approx(120.0, abs=6.0)
    assert machine.step > 1.3 * plain.step
    tenth = next(k for k, done in enumerate(machine.done) if done >= 0.1)
    assert machine.epochs[tenth] == pytest.approx(total, rel=0.15)


def test_no_time_for_a_single_step_is_the_end() -> None:
    machine = Machine(4.0, step=5.0, closing=1.0).run()
    assert machine.step <= 8, "the first segment is blind"


def test_a_path_is_repeated_exactly_on_any_machine(tmp_path: Path) -> None:
    first = Machine(120.0, speed=SPEEDS["half as fast from the middle on"], file=tmp_path / "clock.jsonl").run()
    again = Machine(120.0, step=1.7, file=tmp_path / "clock.jsonl", setup=300.0).run()
    assert (again.done, again.epochs, again.step) == (first.done, first.epochs, first.step)


@pytest.mark.parametrize("cut", ["", '{"step": 3, "do'])
def test_a_resumed_run_follows_the_path_and_then_uses_the_time_that_is_left(tmp_path: Path, cut: str) -> None:
    file = tmp_path / "clock.jsonl"
    killed = Machine(120.0, file=file).run(400)
    with file.open("a") as half:
        half.write(cut)
    back = Machine(120.0, file=file, setup=5_000.0, at=300)  # an hour later, from a checkpoint of before
    began = back.now
    back.run()
    assert back.done[:100] == killed.done[300:]
    assert back.now - began + 300 * 0.1 == pytest.approx(120.0 - 2.0 - 3.0, abs=6.0)
    assert Machine(120.0, file=file).run().step == back.step, "the whole path is on the disk"


@pytest.mark.parametrize("segments", [1, 2, 5])
def test_a_run_resumed_exactly_where_its_path_ends_goes_on_blindly_for_some_steps(
    tmp_path: Path, segments: int
) -> None:
    file = tmp_path / "clock.jsonl"
    whole = Machine(120.0, file=file).run()
    path = Course(file, writes=False).segments[:segments]
    file.write_text("".join(line + "\n" for line in file.read_text().splitlines()[:segments]))
    back = Machine(120.0, file=file, setup=5_000.0, at=path[-1].until)
    began = back.now
    back.run()
    assert back.now - began + path[-1].until * 0.1 == pytest.approx(120.0 - 2.0 - 3.0, abs=6.0)
    assert back.step == pytest.approx(whole.step, rel=0.05)
    assert all(a <= b for a, b in zip(back.done, back.done[1:], strict=False))
    assert back.done[-1] > 0.97


def test_evaluations_before_the_end_take_a_twentieth_of_the_time(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        machine = Machine(1000.0, file=tmp_path / "clock.jsonl", closing=4.0)
        machine.timeline.every = 2
        looks = []
        for epoch in range(1, 100):
            machine.run(J)
            if machine.timeline.evaluates(epoch):
                machine.timeline.evaluated(4.0)
                looks.append(epoch)
        made.append(looks)
        assert all(epoch % 2 == 0 for epoch in looks)
        assert 3 <= len(looks) <= 0.05 * machine.now / 4.0 + 1
    assert made[0] == made[1], "which they were is part of the path"


def test_a_damaged_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clock.jsonl").write_text('{"step": 0}\n')
    with pytest.raises(CheckpointError, match=r"clock.jsonl is damaged"):
        Course(tmp_path / "clock.jsonl", writes=False)


def test_the_path_in_memory_finds_the_segment_of_a_step() -> None:
    course = Course(None, writes=True)
    for step in (0, 10, 15):
        course.add(Segment(step, step / 20, 0.05, step + 5, 3, 0.0))
    assert [course.at(step).step for step in (0, 9, 10, 14, 15, 99)] == [0, 0, 10, 10, 15, 15]
