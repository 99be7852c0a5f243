"""What a person sees of a search: a table in a terminal, a line per decision elsewhere."""

from __future__ import annotations

import io

from rich.console import Console
from test_search_population import done, jobs, population

from rte.report.population import PopulationTable, ancestry, duration, line, table
from rte.search.population import Population, Record


def advance(state: Population, scores: list[float | None]) -> None:
    """Everybody does one interval."""
    for job in jobs(state):
        state.add(done(job, scores[job.member]))


def text(state: Population, left: float | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=120)
    console.print(table(state, left))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_table_of_a_search_under_way() -> None:
    state = population(size=4, epochs=6)
    advance(state, [0.1, 0.2, None, 0.4])
    state.next_interval()
    shown = text(state, 75)
    assert "4 of 12 intervals, 0:01:15 left" in shown[0]
    rows = [[cell.strip() for cell in row.strip("│").split("│")] for row in shown if row.startswith("│")]
    assert rows == [
        ["3", "2", "40.0", "3", "waits"],
        ["1", "2", "20.0", "1", "waits"],
        ["0", "2", "10.0", "0", "trains to epoch 4"],
        ["2", "2", "diverged", "2", "waits"],
    ]


def test_lineages_are_told_newest_first() -> None:
    state = population(size=4, epochs=40)
    assert ancestry(state, 2) == "2"
    advance(state, [0.1, 0.2, 0.3, 0.4])
    advance(state, [0.9, 0.2, 0.3, 0.4])  # 0 inherited from 3 and now leads
    advance(state, [0.9, 0.5, 0.3, 0.4])  # 1 was last and inherited from 0
    assert ancestry(state, 1) == "1 < 0 < 3"
    assert ancestry(state, 2) == "2"
    for number in range(9):
        advance(state, [0.1, 0.5, 0.5, 0.9] if number % 2 else [0.9, 0.5, 0.5, 0.1])
    assert ancestry(state, 0).endswith(" < ...")
    assert ancestry(state, 0).count("<") == 7


def test_finished_members_are_done() -> None:
    state = population(size=2, epochs=4)
    advance(state, [0.1, 0.2])
    advance(state, [0.1, 0.2])
    assert sum("done" in row for row in text(state)) == 2


def test_elsewhere_a_line_for_every_decision() -> None:
    now = [100.0]
    console = Console(file=io.StringIO(), width=120)
    state = population(size=4, epochs=6)
    advance(state, [0.1, 0.2, 0.3, 0.4])
    with PopulationTable(console, clock=lambda: now[0]) as shown:
        shown.begin(state)
        assert shown.left() is None
        for member, score in enumerate([0.5, 0.2, 0.3, 0.4]):
            now[0] += 10
            shown.update()
            assert isinstance(console.file, io.StringIO)
            assert console.file.getvalue() == ""
            job = state.next_interval()
            assert job is not None
            state.add(done(job, score))
            assert job.member == member
        shown.update()
        shown.update()
    assert console.file.getvalue() == ("epoch 4: best 50.0 % (member 0), median 40.0 %, 1 inherited; 0:00:40 left\n")


def test_a_live_table_in_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    state = population(size=2, epochs=4)
    with PopulationTable(console) as shown:
        shown.begin(state)
        state.next_interval()
        shown.update()
    assert isinstance(console.file, io.StringIO)
    assert "Population based training, 0 of 4 intervals, – left" in console.file.getvalue()
    assert "trains to epoch 2" in console.file.getvalue()


def test_durations_and_medians() -> None:
    assert duration(None) == "–"
    assert duration(3723.4) == "1:02:03"
    state = population(size=1, epochs=4)
    state.add(Record(0, 0, 2, 0, {}, None, "x"))
    assert line(state, 2, None) == "epoch 2: best – % (member 0), median – %, 0 inherited; – left"
