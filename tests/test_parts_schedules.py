"""Every kind of schedule at the beginning, the middle and the end, the paper's numbers, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rte.parts import schedules
from rte.parts.schedules import (
    AnySchedule,
    Constant,
    Cosine,
    Exponential,
    Linear,
    Schedule,
    Sine,
    Steps,
    Triangle,
    constant,
    ramp_up,
    risen,
)

READ: TypeAdapter[AnySchedule] = TypeAdapter(Schedule)
LR, Q = "0.03*cos(7*pi*k/(16*K))", "0.6*sin(13*pi*k/(16*K))"


@dataclass(frozen=True)
class At:
    """A moment of a run of 300 epochs."""

    fraction: float
    epochs: int = 300

    @property
    def epoch(self) -> int:
        return int(self.fraction * self.epochs)


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (constant(0.3), (0.3, 0.3, 0.3)),
        (Cosine(scale=2.0), (2.0, 2 * math.cos(7 * math.pi / 32), 2 * math.cos(7 * math.pi / 16))),
        (Cosine(scale=1.0, phase=0.5), (1.0, math.sqrt(0.5), 0.0)),
        (Sine(scale=2.0), (0.0, 2 * math.sin(13 * math.pi / 32), 2 * math.sin(13 * math.pi / 16))),
        (Sine(scale=1.0, phase=1.0), (0.0, 1.0, 0.0)),
        (Linear(start=1.0, end=3.0), (1.0, 2.0, 3.0)),
        (Linear(start=1.0, end=3.0, begin=0.25, until=0.5), (1.0, 3.0, 3.0)),
        (Linear(start=4.0, end=0.0, begin=0.4, until=0.9), (4.0, 3.2, 0.0)),
        (Triangle(peak=1.0, top=0.2), (0.0, 0.625, 0.0)),
        (Triangle(peak=2.0, start=1.0, end=0.5, top=0.5), (1.0, 2.0, 0.5)),
        (Steps(values=(0.1, 0.01, 0.001), epochs=(0, 100, 200)), (0.1, 0.01, 0.001)),
        (Steps(values=(3.0, 1.0), fractions=(0.0, 0.6)), (3.0, 3.0, 1.0)),
        (Exponential(start=1e-3), (1e-3, 1e-3 * 10**-1.5, 1e-6)),
        (Exponential(start=2.0, decades=1), (2.0, 2 / math.sqrt(10), 0.2)),
    ],
)
def test_beginning_middle_and_end(schedule: AnySchedule, values: tuple[float, float, float]) -> None:
    assert [schedule.at(At(f)) for f in (0.0, 0.5, 1.0)] == pytest.approx(list(values), abs=1e-12)


def test_the_papers_q_peaks_at_eight_thirteenths_and_ends_at_a_third() -> None:
    q = READ.validate_python(Q)
    grid = [q.at(At(k / 1300)) for k in range(1301)]
    assert grid.index(max(grid)) == 800
    assert max(grid) == pytest.approx(0.6)
    assert grid[0] == 0
    assert grid[-1] == pytest.approx(0.333, abs=5e-4)
    assert grid[-1] == pytest.approx(0.6 * math.sin(13 * math.pi / 16))


def test_the_papers_learning_rate_ends_above_zero() -> None:
    lr = READ.validate_python(LR)
    assert lr.at(At(0.0)) == 0.03
    assert lr.at(At(1.0)) == pytest.approx(0.03 * math.cos(7 * math.pi / 16))
    assert lr.at(At(1.0)) == pytest.approx(0.00585, abs=5e-6)


def test_triangle_peaks_where_it_says() -> None:
    schedule = Triangle(peak=1.0, top=0.2)
    assert schedule.at(At(0.1)) == pytest.approx(0.5)
    assert schedule.at(At(0.2)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("epoch", "value"), [(0, 0.1), (99, 0.1), (100, 0.01), (199, 0.01), (200, 0.001), (299, 0.001)]
)
def test_steps_change_at_their_epochs(epoch: int, value: float) -> None:
    schedule = Steps(values=(0.1, 0.01, 0.001), epochs=(0, 100, 200))
    assert schedule.at(At((epoch + 0.5) / 300)) == value


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.3, Constant(value=0.3)),
        (10, Constant(value=10.0)),
        (LR, Cosine(scale=0.03, phase=7 / 16)),
        (Q, Sine(scale=0.6, phase=13 / 16)),
        ("0.6 * sin( 13*pi*k / (16*K) )", Sine(scale=0.6, phase=13 / 16)),
        ("0.6*sin(13*pi*k/16/K)", Sine(scale=0.6, phase=13 / 16)),
        ("cos(pi*k/(2*K))", Cosine(scale=1.0, phase=0.5)),
        ("sin(pi*k/K)", Sine(scale=1.0, phase=1.0)),
        ("1e-3*cos(0.5*pi*k/K)", Cosine(scale=1e-3, phase=0.5)),
        (".5*cos(pi*k/K)", Cosine(scale=0.5, phase=1.0)),
        ({"kind": "cosine", "scale": 0.03}, Cosine(scale=0.03)),
        ({"kind": "linear", "start": 0.0, "end": 1.0}, Linear(start=0, end=1)),
        ({"kind": "triangle", "peak": 0.4}, Triangle(peak=0.4)),
        ({"kind": "steps", "values": [1.0, 2.0], "epochs": [0, 5]}, Steps(values=(1, 2), epochs=(0, 5))),
        ({"kind": "exponential", "start": 1e-3}, Exponential(start=1e-3)),
    ],
)
def test_what_is_written_is_the_object_that_is_meant(written: Any, meant: AnySchedule) -> None:
    found = READ.validate_python(written)
    assert type(found) is type(meant)
    assert found == meant
    assert READ.validate_json(READ.dump_json(found)) == meant


@pytest.mark.parametrize(
    "written",
    [
        "",
        "0.3",
        "tan(pi*k/K)",
        "0.6*sin(13*pi*k/(16*K)",
        "0.6*sin(13*k/(16*K))",
        "__import__('os')",
        "cos(pi*k/K)+1",
        "fast",
    ],
)
def test_a_string_that_is_no_formula_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(ValidationError) as problem:
        READ.validate_python(written)
    assert f"'{written}' is no schedule" in str(problem.value)
    assert "0.03*cos(7*pi*k/(16*K))" in str(problem.value)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (True, "input_type=bool"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        ({"kind": "cosin", "scale": 1.0}, "'cosine'"),
        ({"kind": "cosine", "scale": 1.0, "phas": 1.0}, "phas"),
        ({"kind": "cosine", "scale": "1"}, "valid number"),
        ({"kind": "cosine"}, "scale"),
        ({"kind": "linear", "start": 0.0, "end": 1.0, "begin": 0.5, "until": 0.5}, "must lie before until"),
        ({"kind": "linear", "start": 0.0, "end": 1.0, "until": 1.5}, "less than or equal to 1"),
        ({"kind": "triangle", "peak": 1.0, "top": 1.0}, "less than 1"),
        ({"kind": "steps", "values": [1.0]}, "either epochs or fractions"),
        ({"kind": "steps", "values": [1.0], "epochs": [0], "fractions": [0.0]}, "either epochs or fractions"),
        ({"kind": "steps", "values": [1.0, 2.0], "epochs": [0]}, "2 values but 1 starting points"),
        ({"kind": "steps", "values": [1.0, 2.0], "epochs": [1, 2]}, "begin at 0 and rise"),
        ({"kind": "steps", "values": [1.0, 2.0], "epochs": [0, 0]}, "begin at 0 and rise"),
        ({"kind": "steps", "values": [], "epochs": []}, "at least 1 item"),
        ({"kind": "exponential", "start": 1.0, "decades": -400.0}, "greater than or equal to -30"),
        ("0.1*cos(7*pi*k/(0*K))", "divides by 0"),
        ("0.1*cos(7*pi*k/0/K)", "divides by 0"),
    ],
)
def test_a_bad_table_is_refused_with_the_reason(written: Any, reason: str) -> None:
    with pytest.raises(ValidationError) as problem:
        READ.validate_python(written)
    assert reason in str(problem.value)


def test_schedules_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        constant(1.0).value = 2.0  # type: ignore[misc]


@given(st.floats(0.001, 10), st.integers(1, 40), st.integers(1, 40), st.floats(0, 1), st.sampled_from(["cos", "sin"]))
def test_a_formula_is_its_own_arithmetic(scale: float, over: int, below: int, fraction: float, wave: str) -> None:
    schedule = READ.validate_python(f"{scale!r}*{wave}({over}*pi*k/({below}*K))")
    truth = scale * getattr(math, wave)(over * math.pi * fraction / below)
    assert schedule.at(At(fraction)) == pytest.approx(truth, rel=1e-9, abs=1e-9)


NUMBERS = st.floats(-10, 10)
ANY = st.one_of(
    st.builds(Constant, value=NUMBERS),
    st.builds(Cosine, scale=NUMBERS, phase=NUMBERS),
    st.builds(Sine, scale=NUMBERS, phase=NUMBERS),
    st.builds(Linear, start=NUMBERS, end=NUMBERS, begin=st.just(0.25), until=st.floats(0.3, 1.0)),
    st.builds(Triangle, peak=NUMBERS, start=NUMBERS, end=NUMBERS, top=st.floats(0.01, 0.99)),
    st.builds(Steps, values=st.tuples(NUMBERS, NUMBERS, NUMBERS), fractions=st.just((0.0, 0.3, 0.6))),
    st.builds(Exponential, start=NUMBERS, decades=st.floats(-2, 8)),
)


@given(ANY)
def test_the_extent_is_all_that_a_schedule_becomes_and_no_more(schedule: AnySchedule) -> None:
    values = [schedule.at(At(k / 2000)) for k in range(2001)]
    low, high = schedule.extent()
    assert low - 1e-9 <= min(values) <= low + 0.001 * (1 + high - low) * abs(low - high) + 1e-9
    assert high - 0.001 * (1 + high - low) * abs(low - high) - 1e-9 <= max(values) <= high + 1e-9


def test_a_wave_that_ends_at_zero_stays_above_it() -> None:
    assert Cosine(scale=0.1, phase=0.5).extent() == (0.0, 0.1)
    assert Sine(scale=0.6, phase=1.0).extent() == (0.0, 0.6)
    assert Sine(scale=1.0, phase=-999.5).extent() == (-1.0, 1.0)


def test_every_kind_is_offered() -> None:
    kinds = {kind for kind in vars(schedules).values() if isinstance(kind, type) and hasattr(kind, "at")}
    assert kinds == {Constant, Cosine, Sine, Linear, Triangle, Steps, Exponential}


def test_the_ramp_rises_from_almost_nothing_to_one_and_stays() -> None:
    assert [ramp_up(u) for u in (0.0, 0.5, 1.0)] == pytest.approx([math.exp(-5), math.exp(-1.25), 1.0])
    assert (ramp_up(-1.0), ramp_up(7.0)) == (ramp_up(0.0), 1.0)
    assert (risen(At(0.1), 0.2), risen(At(0.3), 0.2), risen(At(0.0), 0.0)) == (ramp_up(0.5), 1.0, 1.0)
