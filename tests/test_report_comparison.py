"""The table, the page and the figure of a comparison."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rte.compare.summary import Figures, Row
from rte.report.comparison import curve, draw, page, table


def row(method: str, last: list[float], **rest: object) -> Row:
    found = {
        "last": Figures(tuple(last)),
        "epochs": Figures((4.0,) * len(last)),
        "seconds": Figures((8.0,) * len(last)),
    }
    return Row(method, 1.0, tuple(f"{method}-s{k}" for k in range(len(last))), found, **rest)  # type: ignore[arg-type]


ROWS = [
    row("ce", [0.5, 0.6], behind=0.2),
    row("gce", [0.7, 0.8], behind=0.0),
    row("rte", [0.7, 0.78], behind=0.01, tie=True),
]


def printed(rows: list[Row]) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table("title", rows))
    return console.export_text()


def test_the_table_fits_a_terminal_and_names_best_and_tie() -> None:
    text = printed(ROWS)
    assert "75.0 ± 7.1" in text
    assert "best" in text
    assert "tie" in text
    assert "20.0" in text
    assert "2 seeds" in text


def test_one_seed_is_said() -> None:
    assert "one seed" in " ".join(printed([row("ce", [0.5], behind=0.0)]).split())


def test_a_failed_method_has_a_row() -> None:
    assert "failed" in printed([*ROWS, Row("elr", None, ("elr-s0",), failed="the loss is nan")])


def test_the_page_has_the_command_and_the_best_in_bold() -> None:
    text = page("digits", ROWS, "rte compare digits")
    assert "    rte compare digits\n" in text
    assert "| **gce** | **75.0 ± 7.1** |" in text


def journal(folder: Path, events: list[tuple[float, float]]) -> Path:
    folder.mkdir(parents=True)
    lines = [json.dumps({"event": "epoch", "seconds": s, "test": {"top1": v}}) for s, v in events]
    (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_a_curve_is_the_mean_over_seeds_at_the_same_time(tmp_path: Path) -> None:
    one = journal(tmp_path / "a", [(1.0, 0.0), (3.0, 0.4)])
    two = journal(tmp_path / "b", [(2.0, 0.2), (4.0, 0.6)])
    time, mean, spread = curve([one, two], "test")
    assert (time[0], time[-1]) == (2.0, 3.0)
    assert mean[0] == pytest.approx(0.2)  # both are at 0.2 after two seconds
    assert mean[-1] == pytest.approx(0.4)
    assert spread[0] == pytest.approx(0.0)
    np.testing.assert_allclose(spread[-1], 0.0, atol=1e-12)


def test_the_figure_has_a_line_for_each_method(tmp_path: Path) -> None:
    for one in ROWS:
        for name in one.folders:
            journal(tmp_path / name, [(1.0, 0.1), (2.0, 0.5)])
    figure = draw(ROWS, tmp_path, "title")
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["ce", "gce", "rte"]
    assert (tmp_path / "comparison.png").stat().st_size > 5000
