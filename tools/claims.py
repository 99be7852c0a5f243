"""The paper's claims, each with what our runs say of it: the block `<!-- claims -->` of docs/claims.md.

`python tools/claims.py docs` rewrites it from results/*.json. A claim compares two cells of a table. It holds where the
difference has the paper's sign and is beyond what the seeds differ by; it is a tie where it is within that.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results import CLOSE
from rte.config import resolve
from rte.files import read_json
from rte.reproduce.define import find
from rte.reproduce.plan import SMALL

Tree = dict[str, Any]
PAGE = "claims.md"
BLOCK = re.compile(r"(<!-- claims -->\n).*?(<!-- end -->)", re.DOTALL)
Place = tuple[str, str]
"""Row and column of a cell."""


@dataclass(frozen=True)
class Claim:
    """`better` is ahead of `worse` in `measure` of a table."""

    says: str
    table: str
    better: Place
    worse: Place
    measure: str = "accuracy"


TEN, HUNDRED = "CIFAR-10", "CIFAR-100"
CLAIMS = (
    Claim("RTE is far ahead of cross-entropy", "main", ("RTE", f"{TEN} 80 %"), ("CE", f"{TEN} 80 %")),
    Claim("RTE is far ahead of GCE alone", "main", ("RTE", f"{TEN} 80 %"), ("GCE", f"{TEN} 80 %")),
    Claim("The robust loss is needed: CE+JSD+ECR is behind", "main", ("RTE", f"{TEN} 80 %"),
          ("CE+JSD+ECR", f"{TEN} 80 %")),
    Claim("Consistency alone helps cross-entropy", "main", ("CE+JSD+ECR", f"{TEN} 80 %"), ("CE", f"{TEN} 80 %")),
    Claim("RTE is ahead of cross-entropy", "main", ("RTE", f"{TEN} 40 %"), ("CE", f"{TEN} 40 %")),
    Claim("RTE is ahead of GCE", "main", ("RTE", f"{TEN} 40 %"), ("GCE", f"{TEN} 40 %")),
    Claim("CE+JSD+ECR is ahead of RTE at 40 %", "main", ("CE+JSD+ECR", f"{TEN} 40 %"), ("RTE", f"{TEN} 40 %")),
    Claim("RTE is ahead of GCE on a hundred classes", "main", ("RTE", f"{HUNDRED} 40 %"), ("GCE", f"{HUNDRED} 40 %")),
    Claim("RTE is ahead of GCE on a hundred classes", "main", ("RTE", f"{HUNDRED} 80 %"), ("GCE", f"{HUNDRED} 80 %")),
    Claim("RTE with 40 % wrong labels withstands corruptions better than CE with clean ones", "mce",
          ("RTE", "40 %"), ("CE", "0 %"), "mce"),
    Claim("RTE with 80 % wrong labels does so, too", "mce", ("RTE", "80 %"), ("CE", "0 %"), "mce"),
    Claim("RTE is ahead of GCE under Patrini's noise", "patrini", ("RTE", "40 %"), ("GCE", "40 %")),
    Claim("Noise shaped like a network's confusions: accuracy falls between 60 and 70 %", "confusion",
          ("RTE", "60 %"), ("RTE", "70 %")),
    *(
        Claim(says, "ablations", ("RTE", "80 %"), (row, "80 %"))
        for says, row in (
            ("ECR is needed", "No ECR"),
            ("JSD helps", "No JSD"),
            ("Label sharpening harms ECR", "ECR with label sharpening"),
            ("RandAugment is too strong for ECR", "ECR with RandAugment"),
        )
    ),
    *(
        Claim(says, "ablations", ("N* = 2, batch-sync", "80 %"), (row, "80 %"))
        for says, row in (
            ("The moving average is needed", "N* = 2, no EMA"),
            ("ECR on the batch of the task loss is better", "N* = 2, no batch-sync"),
            ("ECR is ahead of label guessing", "Label guessing, K = 2"),
            ("ECR is ahead of augmentation anchoring", "Aug. anchoring, K = 2"),
        )
    ),
    Claim("More strong views are better", "nstar", ("RTE", "N* = 8"), ("RTE", "N* = 1")),
    Claim("A very large ECR batch harms", "batchsize", ("RTE", "ECR batch 128"), ("RTE", "ECR batch 1024")),
)  # fmt: skip


def rendered(text: str, results: Path) -> str:
    """The page with its block made anew."""
    head = ["claim", "where", "the paper", "here", "size", "holds"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- | ---: | ---: | --- | --- |"]
    lines += [f"| {' | '.join(line(claim, results))} |" for claim in CLAIMS]
    return BLOCK.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)


def line(claim: Claim, results: Path) -> list[str]:
    """A claim's row of the table."""
    table = find(claim.table)
    paper = {(cell.row, cell.column): cell.paper.get(claim.measure) for cell in table.cells}
    theirs = [_number(paper[place]) for place in (claim.better, claim.worse)]
    anchor = re.sub(r"[- ]+", "-", re.sub(r"[^a-z0-9 -]", "", table.title.lower()))
    where = f"[{claim.table}](results.md#{anchor})"
    column = claim.better[1] if claim.better[1] == claim.worse[1] else f"{claim.better[1]}, {claim.worse[1]}"
    tree = read_json(path) if (path := results / f"{claim.table}.json").is_file() else {"cells": []}
    cells = {(cell["row"], cell["column"]): cell for cell in tree["cells"] if _of_this_size(cell)}
    pair = [cells.get(place, {}).get("ours", {}).get(claim.measure) for place in (claim.better, claim.worse)]
    ours = [_number(None if found is None else found["mean"]) for found in pair]
    size = ""
    if None not in pair:
        run = cells[claim.better]["runs"][0]
        seeds = min(len(found["values"]) for found in pair)
        size = f"{run['net']}, {run['epochs']} epochs, {seeds} seed{'s' if seeds > 1 else ''}"
    return [claim.says, f"{where}, {column}", " / ".join(theirs), " / ".join(ours), size, verdict(claim.measure, pair)]


def _of_this_size(cell: Tree) -> bool:
    """Whether a cell's runs have the network of the preset; those of earlier versions had a smaller one."""
    return {run.get("net") for run in cell["runs"] if run["status"] == "done"} == {resolve(SMALL).net.name}


def verdict(measure: str, pair: list[Tree | None]) -> str:
    """yes, tie or no, by the difference of two means and its standard error; "not run" where one is missing."""
    first, second = pair
    if first is None or second is None:
        return "not run"
    apart = (first["mean"] - second["mean"]) * (-1 if measure == "mce" else 1)
    if abs(apart) <= chance(first, second):
        return "tie"
    return "**yes**" if apart > 0 else "**no**"


def chance(first: Tree, second: Tree) -> float:
    """By how much two means may differ by chance: two standard errors over seeds, or `CLOSE` where one seed was run."""
    if first["spread"] is None or second["spread"] is None:
        return CLOSE
    variance = sum(found["spread"] ** 2 / len(found["values"]) for found in (first, second))
    return 2.0 * math.sqrt(variance)


def _number(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.1f}"


def update(docs: Path, results: Path | None = None) -> bool:
    """Rewrite the page; whether it changed."""
    page = docs / PAGE
    old = page.read_text(encoding="utf-8")
    new = rendered(old, results or docs.parent / "results")
    if new != old:
        page.write_text(new, encoding="utf-8")
    return new != old


if __name__ == "__main__":
    if update(Path(sys.argv[1])):
        print(Path(sys.argv[1]) / PAGE)
