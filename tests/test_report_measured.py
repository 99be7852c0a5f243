"""The numbers on the pages are those in results/, and the account on paper adds up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from measured import (
    GPUS,
    Search,
    frontier,
    measured,
    parts,
    pbt_digits,
    precision,
    refresh,
    search_cost,
    step,
)

from rte.errors import ConfigError
from rte.files import write_json

ROOT = Path(__file__).parents[1]


def test_the_committed_pages_are_up_to_date(tmp_path: Path) -> None:
    for name in ("docs", "results"):
        shutil.copytree(ROOT / name, tmp_path / name)
    stale = [path.name for path in refresh(tmp_path / "docs")]
    assert stale == [], "run: python tools/measured.py docs"


SCALING: dict[str, Any] = {
    "net": "compact",
    "batch": 64,
    "views": 2,
    "cores": 2,
    "rounds": 3,
    "versions": {"torch": "2"},
    "rows": [{"name": "2 processes", "step_seconds": 0.25, "speedup": 1.849, "lowest": 1.7, "highest": 1.9}],
}


def test_a_block_is_filled_when_its_results_are_there(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "results").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text("a\n<!-- measured:scaling -->\n<!-- end -->\nb\n", "utf-8")
    assert refresh(tmp_path / "docs") == [page]
    assert "Not measured yet." in page.read_text("utf-8")
    write_json(tmp_path / "results" / "scaling.json", SCALING)
    assert refresh(tmp_path / "docs") == [page]
    text = page.read_text("utf-8")
    assert "| 2 processes | 0.250 | 1.85 | 1.70 to 1.90 |" in text
    assert "Not measured" not in text
    assert text.startswith("a\n<!-- measured")
    assert text.endswith("<!-- end -->\nb\n")
    assert refresh(tmp_path / "docs") == []


def contest(pbt: float) -> dict[str, Any]:
    """Two rounds; the best on held-out labels is not the best on the test set."""
    manual = [{"test": 0.95, "held_out": 0.3}, {"test": 0.93, "held_out": 0.4}]
    rounds = [{"noise": k, "pbt": {"test": pbt}, "manual": manual, "long": {"test": 0.9}} for k in (0, 1)]
    means = {"pbt": pbt, "manual_best": 0.93, "manual_mean": 0.94, "long": 0.9}
    return {"population": 2, "epochs": 40, "margin": 0.01, "rounds": rounds, "mean": means}


def test_the_contest_says_how_it_ended() -> None:
    text = pbt_digits(contest(0.95))
    assert "| PBT, 2 members for 40 epochs | 95.0 | 95.0 | 95.00 |" in text
    assert "| the preset, best of 2 on held-out labels | 93.0 | 93.0 | 93.00 |" in text
    assert "| the preset, mean of 2 | 94.0 | 94.0 | 94.00 |" in text
    assert "| the preset for 80 epochs | 90.0 | 90.0 | 90.00 |" in text
    assert "2.00 points above the best of 2 manual runs, within the margin of 1.0." in text
    assert "0.50 points below the best of 2 manual runs, within the margin" in pbt_digits(contest(0.925))
    assert "1.50 points below the best of 2 manual runs, outside the margin" in pbt_digits(contest(0.915))


def test_the_account_on_paper() -> None:
    search = Search()
    assert search.macs == pytest.approx(1.894e9, rel=1e-3)
    assert search.passes(10) == 34
    by_hand = 35 * 300 * 45_000 * (3 * 7.5 + 1) * 2 * search.macs
    assert search.flop == pytest.approx(by_hand)
    hours = by_hand / (15.7e12 * 0.5) / 3600
    assert GPUS[0] == ("V100, fp32", 15.7, 0.5)
    assert f"| V100, fp32 | 15.7 | 50 | {hours:,.0f} | {hours / 8:.0f} |" in search_cost("cifar10-search")


@pytest.mark.parametrize("wrong", ["scalling", "pbt"])
def test_an_unknown_measurement_is_an_error(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no measurement '{wrong}'"):
        measured(tmp_path, wrong)
    with pytest.raises(ConfigError, match="no account"):
        search_cost(wrong)


def test_a_frontier_has_a_table_for_each_noise_and_marks_the_best() -> None:
    def row(noise: str, method: str, minutes: float, mean: float, spread: float | None) -> dict[str, Any]:
        net = {5.0: "swift-24", 10.0: "swift-32"}[minutes]
        return {"noise": noise, "method": method, "minutes": minutes, "net": net, "mean": mean, "spread": spread}

    rows = [row("symmetric:0.4", "rte", 5.0, 82.04, 0.31), row("symmetric:0.4", "gce", 5.0, 81.0, None)]
    more = [row("symmetric:0.4", "rte", 10.0, 84.0, None), row("symmetric:0.8", "gce", 10.0, 40.0, 2.0)]
    text = frontier({"rows": [*rows, *more]})
    assert "| symmetric:0.4, test accuracy % | 5 minutes, swift-24 | 10 minutes, swift-32 |" in text
    assert "| rte | **82.0** ± 0.3 | 84.0 |" in text
    assert "| gce | 81.0 | – |" in text
    assert "| symmetric:0.8, test accuracy % | 10 minutes, swift-32 |" in text, "times that it was run for"
    assert "| gce | 40.0 ± 2.0 |" in text  # with nothing to be better than
    assert "Before" not in text
    tie = frontier({"rows": [rows[0], row("symmetric:0.4", "elr", 5.0, 82.03, None)]})
    assert "| rte | **82.0** ± 0.3 |" in tie
    assert "| elr | **82.0** |" in tie
    now, before = frontier({"rows": rows, "earlier": [row("symmetric:0.4", "rte", 5.0, 77.0, None)]}).split("Before")
    assert "82.0" in now
    assert "77.0" not in now
    assert before.count("| rte | 77.0 |") == 1


def test_a_frontier_shows_noises_of_one_time_beside_each_other() -> None:
    def row(noise: str, method: str, minutes: float, mean: float) -> dict[str, Any]:
        return {"noise": noise, "method": method, "minutes": minutes, "net": "a", "mean": mean, "spread": None}

    long = [row("40 % symmetric", "rte", 5.0, 80.0), row("40 % symmetric", "rte", 10.0, 84.0)]
    short = [("CIFAR-10N worst", "gce", 7.0), ("60 % symmetric", "rte", 70.0), ("clean labels", "rte", 90.0)]
    short += [("clean labels", "gce", 91.0), ("5 % symmetric", "rte", 85.0)]
    text = frontier({"rows": [*long, *(row(noise, method, 5.0, mean) for noise, method, mean in short)]})
    several, across = text.split("\n\n")
    assert several.splitlines()[-1] == "| rte | 80.0 | 84.0 |", "one table by minutes, of the noise that has several"
    order = ["clean labels", "5 % symmetric", "40 % symmetric", "60 % symmetric", "CIFAR-10N worst"]
    assert across.splitlines()[0] == f"| 5 minutes, test accuracy % | {' | '.join(order)} |"
    assert across.splitlines()[2:] == [
        "| rte | 90.0 | 85.0 | 80.0 | 70.0 | – |",
        "| gce | **91.0** | – | – | – | 7.0 |",
    ]
    assert "5 minutes, test" not in frontier({"rows": long}), "where there is nothing to add"
    assert frontier({"rows": []}) == ""


def test_the_floor_of_a_step() -> None:
    row = {"net": "compact", "views": 2, "batch": 128, "ratio": 1.0789, "quartiles": [1.05, 1.11], "step_seconds": 0.6}
    assert "| compact | 2 | 128 | 1.08 | 1.05 to 1.11 | 0.60 |" in step({"rows": [row]})


def test_half_precision_beside_single() -> None:
    row = {"net": "swift-48", "seconds": {"fp32": 0.2, "bf16": 0.125}, "ratio": 1.6}
    assert "| swift-48 | 0.200 | 0.125 | 1.60 |" in precision({"rows": [row]})


def test_parts_are_held_against_the_whole_seed_by_seed() -> None:
    def row(name: str, seeds: list[int], held_out: list[float], test: list[float]) -> dict[str, Any]:
        what = {"noise": "40 % symmetric", "name": name, "steps": 2933}
        return {**what, "seeds": seeds, "held_out": held_out, "test": test}

    rows = [
        row("the preset", [0, 1, 2], [50.0, 52.0, 54.0], [80.0, 81.0, 82.0]),
        row("SGD", [0, 1, 2], [47.0, 50.0, 53.0], [79.0, 80.0, 81.0]),
        row("one look", [2], [53.0], [81.5]),
        row("another", [3], [53.0], [81.5]),
    ]
    text = parts({"network": "swift-24", "rows": rows})
    assert text.startswith("| 40 % symmetric, `swift-24` | steps | seeds | noisy held-out % | difference | test % |")
    assert "| the preset | 2,933 | 3 | 52.0 |  | 81.0 |  |" in text
    assert "| SGD | 2,933 | 3 | 50.0 | -2.00 ± 0.58 | 80.0 | -1.00 ± 0.00 |" in text  # -3, -2, -1: 1 / sqrt(3)
    assert "| one look | 2,933 | 1 | 53.0 | -1.00 | 81.5 | -0.50 |" in text, "of the seed they share"
    assert "| another | 2,933 | 1 | 53.0 |  | 81.5 |  |" in text
