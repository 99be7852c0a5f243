"""The page of claims: made from results/, and a tie is called a tie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claims import CLAIMS, Claim, line, rendered, verdict

from rte.files import write_json
from rte.reproduce.define import find

ROOT = Path(__file__).parents[1]


def seen(*values: float, spread: float | None = None) -> dict[str, Any]:
    return {"mean": sum(values) / len(values), "spread": spread, "values": list(values)}


def test_the_page_is_up_to_date() -> None:
    """`python tools/claims.py docs` changes nothing."""
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert rendered(text, ROOT / "results") == text


def test_the_paper_has_both_numbers_of_every_claim_and_they_agree_with_it() -> None:
    for claim in CLAIMS:
        cells = {(cell.row, cell.column): cell.paper[claim.measure] for cell in find(claim.table).cells if cell.paper}
        better, worse = (-1.0 if cells[place] == "fail" else cells[place] for place in (claim.better, claim.worse))
        sign = -1 if claim.measure == "mce" else 1
        assert sign * (better - worse) > 0, claim.says  # type: ignore[operator]


@pytest.mark.parametrize(
    ("first", "second", "measure", "said"),
    [
        (seen(70.0), seen(60.0), "accuracy", "**yes**"),
        (seen(70.0), seen(68.5), "accuracy", "tie"),
        (seen(60.0), seen(70.0), "accuracy", "**no**"),
        (seen(40.0), seen(50.0), "mce", "**yes**"),
        # standard errors 0.1 / sqrt(2): twice that of the difference is 0.2
        (seen(70.0, 70.2, spread=0.1), seen(69.8, 70.0, spread=0.1), "accuracy", "tie"),
        (seen(70.3, 70.3, spread=0.1), seen(69.8, 70.0, spread=0.1), "accuracy", "**yes**"),
        (seen(70.0), None, "accuracy", "not run"),
    ],
)
def test_verdicts(first: Any, second: Any, measure: str, said: str) -> None:
    assert verdict(measure, [first, second]) == said


@pytest.mark.parametrize(("net", "said"), [("swift-32", "**yes**"), ("swift-16", "not run")])
def test_runs_of_another_size_do_not_count(tmp_path: Path, net: str, said: str) -> None:
    runs = [{"status": "done", "net": net, "epochs": 30}]
    cells = [
        {"row": row, "column": "CIFAR-10 80 %", "runs": runs, "ours": {"accuracy": seen(value)}}
        for row, value in (("RTE", 68.0), ("CE", 42.0))
    ]
    write_json(tmp_path / "main.json", {"cells": cells})
    claim = Claim("ahead", "main", ("RTE", "CIFAR-10 80 %"), ("CE", "CIFAR-10 80 %"))
    found = line(claim, tmp_path)
    assert found[-1] == said
    assert found[2:4] == ["93.1 / 59.7", "68.0 / 42.0" if said != "not run" else "– / –"]
