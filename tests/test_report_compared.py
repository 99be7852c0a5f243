"""The table of all methods on digits says what results/digits.json says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compared import of_method, overview

from rte.files import write_json


def row(method: str, *last: float, tie: bool = False, behind: float | None = 0.1) -> dict[str, Any]:
    values = {"last": list(last), "selected": list(last), "memorised": [0.1] * len(last)}
    return {"method": method, **values, "behind": behind, "tie": tie, "failed": None}


BROKEN = {"method": "mlnt", "behind": None, "tie": False, "failed": "the loss is nan"}
FOUND: dict[str, Any] = {
    "epochs": 16,
    "holdout": 0.2,
    "trusted": 100,
    "seeds": 2,
    "rated": "symmetric:0.4",
    "rates": {"all": {"ce": 1.0, "gce": 3.0, "sop": 0.3, "mlnt": None}, "trusted": {"ce": 1.0, "l2rw": 1.0}},
    "noises": {
        "symmetric:0.4": {
            "all": [row("ce", 0.8, 0.82), row("gce", 0.9, 0.92, behind=0.0), row("sop", 0.9, 0.9, tie=True), BROKEN],
            "trusted": [row("ce", 0.85, 0.85), row("l2rw", 0.95, 0.97, behind=0.0)],
        },
        "none": {"all": [row("ce", 0.97, behind=0.0), row("gce", 0.96)]},
    },
}


def test_the_best_and_what_ties_with_it_is_bold() -> None:
    lines = overview(FOUND).splitlines()
    assert "| method | rate | clean labels | symmetric 40 % |" in lines
    assert "| `gce` | 3 | 96.0 | **91.0 ± 1.4** |" in lines
    assert "| `ce` | 1 | **97.0** | 81.0 ± 1.4 |" in lines
    assert "| `sop` | 0.3 | – | **90.0 ± 0.0** |" in lines
    assert "| `mlnt` | – | – | failed |" in lines
    assert "| `l2rw` † | 1 | – | **96.0 ± 1.4** |" in lines
    order = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert order == ["gce", "sop", "ce", "mlnt", "l2rw", "ce"]


def test_a_table_that_is_not_finished_says_so() -> None:
    text = overview(FOUND)
    assert "**not finished**: 1 of 2 seeds, and nothing yet of symmetric 60 %" in " ".join(text.split())
    assert max(len(line) for line in text.splitlines() if line[:1] != "|") <= 120
    whole = dict.fromkeys(("none", *(f"symmetric:0.{k}" for k in (4, 6, 8))), FOUND["noises"]["symmetric:0.4"])
    done = overview({**FOUND, "noises": {**whole, "pair:0.45": whole["none"]}})
    assert "16 epochs, 2 seeds. Bold" in " ".join(done.split())


def test_the_page_of_a_method_has_its_rows(tmp_path: Path) -> None:
    assert of_method("gce", tmp_path) == ""
    write_json(tmp_path / "digits.json", FOUND)
    page = of_method("gce", tmp_path)
    assert "| clean labels | 96.0 | 96.0 | 10.0 | 1 |" in page
    assert "| symmetric 40 % | 91.0 ± 1.4 | 91.0 ± 1.4 | 10.0 ± 0.0 | 2 |" in page
    assert "81.0" not in page
    assert "| symmetric 40 % † | 96.0 ± 1.4" in of_method("l2rw", tmp_path)
    assert "100 labels are known to be right" in of_method("l2rw", tmp_path)
    assert "| symmetric 40 % | failed |" in of_method("mlnt", tmp_path)
