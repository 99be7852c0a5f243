"""Values that change over training: learning rate, q, the lambdas, N*.

A schedule is a typed value, written in TOML as a number, a table or one of the paper's formulas:

    lr = 0.1
    lr = { kind = "cosine", scale = 0.03, phase = 0.4375 }       # 0.03 cos(7 pi k / 16 K)
    q  = "0.6*sin(13*pi*k/(16*K))"                                # the same kind of object, from the formula

`extent()` is the least and the greatest value that a schedule takes, so that its range is checked before a run begins.
`at(t)` takes the progress of the run, of which a schedule only looks at `t.epoch`, `t.epochs` and `t.fraction` = k/K
(k: steps done, K: all steps).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import BeforeValidator, Field, model_validator

from rte.settings import Settings


class Moment(Protocol):
    """Where in the run we are."""

    @property
    def epoch(self) -> int: ...

    @property
    def epochs(self) -> int: ...

    @property
    def fraction(self) -> float: ...


def ramp_up(share: float) -> float:
    """exp(-5 (1 - u)^2), u the share of the ramp that lies behind, kept inside 0..1: from 0.0067 up to 1."""
    return math.exp(-5.0 * (1.0 - min(max(share, 0.0), 1.0)) ** 2)


def risen(t: Moment, ramp: float) -> float:
    """`ramp_up` in the first share `ramp` of the run, 1 afterwards and without a ramp."""
    return ramp_up(t.fraction / ramp) if ramp else 1.0


class Within(NamedTuple):
    """A moment of a part of a run, as if the part were a run of its own."""

    epoch: int
    epochs: int
    fraction: float


def within(t: Moment, begin: float, until: float, *, epoch: int = 0) -> Moment:
    """t as it would be in a run of that part of this one alone, which began with epoch number `epoch`."""
    if begin <= 0.0 and until >= 1.0:
        return t
    share = max(until - begin, 1e-6)
    fraction = min(1.0, max(0.0, (t.fraction - begin) / share))
    return Within(t.epoch - epoch, max(1, round(share * t.epochs)), fraction)


class Constant(Settings):
    """The same value throughout."""

    kind: Literal["constant"] = "constant"
    value: float

    def at(self, t: Moment) -> float:
        return self.value

    def extent(self) -> tuple[float, float]:
        return self.value, self.value


def constant(value: float) -> Constant:
    """The schedule that a plain number stands for."""
    return Constant(value=float(value))


class Cosine(Settings):
    """scale * cos(phase * pi * k/K); phase 7/16 is the paper's learning rate, 1/2 ends at zero."""

    kind: Literal["cosine"] = "cosine"
    scale: float
    phase: float = Field(default=0.4375, ge=-1000.0, le=1000.0)

    def at(self, t: Moment) -> float:
        return self.scale * math.cos(self.phase * math.pi * t.fraction)

    def extent(self) -> tuple[float, float]:
        return _wave(self.scale, math.cos, self.phase)


class Sine(Settings):
    """scale * sin(phase * pi * k/K); phase 13/16 is the paper's q: up to `scale` at 8/13 of the run, then down."""

    kind: Literal["sine"] = "sine"
    scale: float
    phase: float = Field(default=0.8125, ge=-1000.0, le=1000.0)

    def at(self, t: Moment) -> float:
        return self.scale * math.sin(self.phase * math.pi * t.fraction)

    def extent(self) -> tuple[float, float]:
        return _wave(self.scale, math.sin, self.phase)


def _wave(scale: float, wave: Callable[[float], float], phase: float) -> tuple[float, float]:
    """Least and greatest value up to that phase; both waves turn at whole and half multiples of pi alone."""
    turns = range(math.floor(min(4.0, 2 * abs(phase))) + 1)
    sign = math.copysign(1.0, phase)
    values = [scale * wave(angle * math.pi) for angle in (phase, *(sign * k / 2 for k in turns))]
    low, high = (round(end, 12) for end in (min(values), max(values)))  # the sine of pi is not quite 0
    return low, high


class Linear(Settings):
    """From `start` to `end` in a straight line between the fractions `begin` and `until` of the run, flat outside."""

    kind: Literal["linear"] = "linear"
    start: float
    end: float
    begin: float = Field(0.0, ge=0.0, le=1.0)
    until: float = Field(1.0, ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _ordered(self) -> Linear:
        if self.begin >= self.until:
            raise ValueError(f"begin ({self.begin}) must lie before until ({self.until})")
        return self

    def at(self, t: Moment) -> float:
        part = (t.fraction - self.begin) / (self.until - self.begin)
        return self.start + (self.end - self.start) * min(max(part, 0.0), 1.0)

    def extent(self) -> tuple[float, float]:
        return min(self.start, self.end), max(self.start, self.end)


class Triangle(Settings):
    """Linear from `start` up to `peak` at the fraction `top` of the run, then linear down to `end`."""

    kind: Literal["triangle"] = "triangle"
    peak: float
    start: float = 0.0
    end: float = 0.0
    top: float = Field(0.2, gt=0.0, lt=1.0)

    def at(self, t: Moment) -> float:
        if t.fraction < self.top:
            return self.start + (self.peak - self.start) * t.fraction / self.top
        return self.peak + (self.end - self.peak) * (t.fraction - self.top) / (1.0 - self.top)

    def extent(self) -> tuple[float, float]:
        return min(self.start, self.peak, self.end), max(self.start, self.peak, self.end)


class Steps(Settings):
    """values[j] from epochs[j] (or from fractions[j] of the run) on; the first must start at 0."""

    kind: Literal["steps"] = "steps"
    values: tuple[float, ...] = Field(min_length=1, strict=False)
    epochs: tuple[int, ...] | None = Field(None, strict=False)
    fractions: tuple[float, ...] | None = Field(None, strict=False)

    @model_validator(mode="after")
    def _complete(self) -> Steps:
        if (self.epochs is None) == (self.fractions is None):
            raise ValueError("steps need either epochs or fractions")
        starts = self._starts
        if len(starts) != len(self.values):
            raise ValueError(f"{len(self.values)} values but {len(starts)} starting points")
        if starts[0] != 0 or any(a >= b for a, b in pairwise(starts)):
            raise ValueError("starting points must begin at 0 and rise")
        return self

    @property
    def _starts(self) -> Sequence[float]:
        return self.epochs if self.epochs is not None else (self.fractions or ())

    def at(self, t: Moment) -> float:
        now = t.epoch if self.epochs is not None else t.fraction
        return [value for value, start in zip(self.values, self._starts, strict=True) if start <= now][-1]

    def extent(self) -> tuple[float, float]:
        return min(self.values), max(self.values)


class Exponential(Settings):
    """start * (1 / 10^decades)^(k/K): `decades` orders of magnitude lower at the end of the run."""

    kind: Literal["exponential"] = "exponential"
    start: float
    decades: float = Field(default=3.0, ge=-30.0, le=30.0)

    def at(self, t: Moment) -> float:
        return float(self.start * 10.0 ** (-self.decades * t.fraction))

    def extent(self) -> tuple[float, float]:
        ends = self.start, float(self.start * 10.0**-self.decades)
        return min(ends), max(ends)


SCALE = ("value", "scale", "start", "end", "peak", "values")
"""The fields of schedules that their values are proportional to."""


def scaled(schedule: AnySchedule, factor: float) -> AnySchedule:
    """The schedule whose values are `factor` times as high."""
    fields = {name: value for name, value in schedule if name in SCALE}
    times = {name: tuple(factor * v for v in old) if name == "values" else factor * old for name, old in fields.items()}
    return schedule.model_copy(update=times)


NUMBER = r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?"
WAVE = re.compile(
    rf"(?:({NUMBER})\*)?(cos|sin)\((?:({NUMBER})\*)?pi\*k/(?:\((\d+)\*K\)|(\d+)/K|K)\)"  # a*cos(7*pi*k/(16*K))
)


def parse(value: Any) -> Any:
    """Numbers and formula strings as the table of the schedule they stand for; anything else as it is."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return {"kind": "constant", "value": float(value)}
    if isinstance(value, str):
        match = WAVE.fullmatch(value.replace(" ", ""))
        if match is None:
            raise ValueError(
                f"'{value}' is no schedule; write a number, a table or a formula such as 0.03*cos(7*pi*k/(16*K))"
            )
        scale, wave, turns, below, over = match.groups()
        below = float(below or over or 1)
        if not below:
            raise ValueError(f"'{value}' divides by 0")
        phase = float(turns or 1) / below
        return {"kind": "cosine" if wave == "cos" else "sine", "scale": float(scale or 1), "phase": phase}
    return value


AnySchedule = Constant | Cosine | Sine | Linear | Triangle | Steps | Exponential
Schedule = Annotated[Annotated[AnySchedule, Field(discriminator="kind")], BeforeValidator(parse)]
