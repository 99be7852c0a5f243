"""The page of results: up to date with results/*.json, and honest about order, failures and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from results import figure_name, has_figure, rendered, summaries, update
from rte.errors import ConfigError
from rte.files import write_json
from rte.reproduce.define import find
from rte.reproduce.summary import pairs
from rte.reproduce.tables import TABLES

ROOT = Path(__file__).parents[1]


def test_the_page_is_up_to_date() -> None:
    """`python tools/results.py docs` changes nothing."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert rendered(text, ROOT / "results") == text
    for tree in summaries(text, ROOT / "results"):
        if has_figure(tree):
            assert (ROOT / "docs" / "images" / figure_name(tree)).is_file()


def test_the_page_has_every_table() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for table in TABLES:
        assert text.count(f"<!-- results:{table.name} -->") == 1


def cell(
    row: str, column: str, paper: Any, ours: float | None, measure: str = "accuracy", **run: Any
) -> dict[str, Any]:
    mean = {} if ours is None else {measure: {"mean": ours, "spread": None, "values": [ours]}}
    status = {"status": "not run" if ours is None else "done", "seed": 0, "folder": f"{row}{column}"}
    return {"row": row, "column": column, "paper": {measure: paper}, "ours": mean, "runs": [{**status, **run}]}


def tree(table: str, cells: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
    found = pairs(find(table), cells)
    measures = list(find(table).measured("laptop"))
    made = {"rte": "1", "git": None, "torch": "2", "cpus": 2, "cuda": None}
    return {
        "table": table, "size": "laptop", "set": [], "seeds": [0], "seconds": 120.0, "made_with": [made],
        "measures": measures, "differs": {}, "cells": cells, "not_run": [], "left_out": [],
        "compared": len(found), "reversed": [entry for entry in found if entry.pop("reversed")], **rest,
    }  # fmt: skip


def page(tmp_path: Path, tree: dict[str, Any]) -> str:
    (tmp_path / "results").mkdir(exist_ok=True)
    write_json(tmp_path / "results" / f"{tree['table']}.json", tree)
    return rendered(f"# Page\n<!-- results:{tree['table']} -->\nold\n<!-- end -->\n", tmp_path / "results")


def test_pairs_in_the_other_order_are_named() -> None:
    cells = [
        cell("RTE", "80 %", 93.09, 50.0),
        cell("No ECR", "80 %", 61.91, 55.0),
        cell("No JSD", "80 %", 90.37, 52.0),
        cell("sharpened", "80 %", "fail", 10.0),
        cell("elsewhere", "40 %", 99.0, 0.0),
        cell("unrun", "80 %", 99.0, None),
    ]
    found = pairs(find("ablations"), cells)
    assert len(found) == 6
    turned = [set(entry["pair"]) for entry in found if entry["reversed"]]
    assert turned == [{"RTE", "No ECR"}, {"RTE", "No JSD"}, {"No ECR", "No JSD"}]


def test_a_failed_run_is_below_all_others_and_said_to_have_failed(tmp_path: Path) -> None:
    failed = cell("sharpened", "80 %", "fail", None, status="failed", reason="the loss is nan.")
    cells = [cell("RTE", "80 %", 93.09, 50.0), failed, cell("anchored", "80 %", 80.0, 60.0)]
    text = page(tmp_path, tree("ablations", cells))
    assert "| sharpened | fail | fail |" in text
    assert "Failed: sharpened, 80 %: the loss is nan." in text
    assert "**The ordering differs from the paper's** in 1 of 3 pairs: RTE / anchored (accuracy)." in text
    assert "old" not in text


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "in 3 of 3 pairs: RTE / No ECR (accuracy). A further 2 differ by less than 2 points"),
        (2, "in 3 of 3 pairs: RTE / No ECR (accuracy); RTE / No JSD (accuracy); No ECR / No JSD (accuracy)."),
    ],
)
def test_what_may_be_chance_is_counted_not_listed(tmp_path: Path, seeds: int, said: str) -> None:
    cells = [
        cell("RTE", "80 %", 93.09, 50.0),
        cell("No ECR", "80 %", 61.91, 52.9),
        cell("No JSD", "80 %", 90.37, 51.5),
    ]
    text = page(tmp_path, tree("ablations", cells, seeds=list(range(seeds))))
    assert said in text.replace("\n", " ")
    assert max(len(line) for line in text.splitlines()) <= 120, "text is wrapped"


def test_what_was_not_run_is_said(tmp_path: Path) -> None:
    cells = [cell("RTE", "CIFAR-10 40 %", 94.84, 70.0), cell("CE", "CIFAR-10 40 %", 90.06, None)]
    cells.append(cell("RTE", "CIFAR-10 80 %", 93.09, 40.0))
    changes: dict[str, Any] = {"not_run": ["CE, CIFAR-10 40 %"], "left_out": ["RTE, CIFAR-100 0 %"]}
    text = page(tmp_path, tree("main", cells, differs={"noise": {"ratio": 0.6}}, **changes))
    assert "| RTE | 70.00 (94.84) | 40.00 (93.09) |" in text
    assert "| CE | – (90.06) |" in text
    assert "Not run: CE, CIFAR-10 40 %." in text
    assert "Left out at this size: RTE, CIFAR-100 0 %." in text
    assert "unlike in the paper: noise.ratio = 0.6." in text
    assert "2 minutes of training" in text
    assert "one seed" in text


def test_counts_that_were_not_sampled_are_no_zeros(tmp_path: Path) -> None:
    classes = [{"name": "cat", "paper": {"given": 6205, "right": 2038}, "given": [], "right": []}]
    text = page(tmp_path, tree("counts", [{**cell("class counts", "60 %", None, None), "classes": classes}]))
    assert "| cat | 6205 | – | 2038 | – |" in text
    assert "| total | 6205 | – | 2038 | – |" in text


def test_figures_are_drawn(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    blocks = "".join(f"<!-- results:{name} -->\n<!-- end -->\n" for name in ("nstar", "histograms", "reliability"))
    (docs / "results.md").write_text(blocks)
    sweep = [cell("RTE", f"N* = {n}", 90.0 + n, 50.0 + n) for n in (1, 2, 3)]
    counts = {"edges": [0.0, 1.0, 2.0], "right": {"count": [9, 1]}, "wrong": {"count": [1, 9]}}
    bins = {"edges": [0.0, 0.5, 1.0], "accuracy": [None, 0.8], "ece": 0.1}
    page(tmp_path, tree("nstar", sweep))
    page(tmp_path, tree("histograms", [cell("RTE", "40 %", None, 70.0, losses=counts)]))
    page(tmp_path, tree("reliability", [cell("RTE", "40 %", None, 70.0, reliability=bins)]))
    written = {path.name for path in update(docs)}
    assert written == {"results.md", "results-nstar.png", "results-histograms.png", "results-reliability.png"}
    text = (docs / "results.md").read_text()
    assert "![Number of strong views N*](images/results-nstar.png)" in text
    assert "results.md" not in {path.name for path in update(docs)}  # a second time, the page is up to date


def test_a_block_without_end() -> None:
    with pytest.raises(ConfigError, match="the block results:main does not end"):
        rendered("<!-- results:main -->\n", Path())
