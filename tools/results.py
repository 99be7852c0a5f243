"""The page of results: tables between markers in docs/results.md, and figures, made from results/*.json.

`python tools/results.py docs` rewrites them; the folder results/ lies beside docs/.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from reference import BLOCK

from rte.errors import ConfigError
from rte.files import read_json
from rte.reproduce.define import MEASURES, Table, find

Tree = dict[str, Any]
PAGE = "results.md"


def update(docs: Path, results: Path | None = None) -> list[Path]:
    """Rewrite the generated parts of the page and draw the figures; returns what was written."""
    from figures import draw

    results = results or docs.parent / "results"
    page = docs / PAGE
    old = page.read_text(encoding="utf-8")
    new = rendered(old, results)
    written = []
    if new != old:
        page.write_text(new, encoding="utf-8")
        written.append(page)
    for tree in summaries(old, results):
        path = docs / "images" / figure_name(tree)
        if draw(tree, path):
            written.append(path)
    return written


def rendered(text: str, results: Path) -> str:
    """The page with every block `<!-- results:TABLE -->` made anew."""
    return BLOCK.sub(lambda match: _block(match, results), text)


def summaries(text: str, results: Path) -> list[Tree]:
    """All results that the page shows."""
    names = [match["name"] for match in BLOCK.finditer(text) if match["kind"] == "results"]
    paths = [path for name in names for path in _paths(name, results) if path.is_file()]
    return [read_json(path) for path in paths]


def figure_name(tree: Tree) -> str:
    return f"results-{tree['table']}{'-paper' if tree['size'] == 'paper' else ''}.png"


def _paths(name: str, results: Path) -> tuple[Path, Path]:
    return results / f"{name}.json", results / "paper" / f"{name}.json"


def _block(match: re.Match[str], results: Path) -> str:
    kind, name = match["kind"], match["name"]
    if not match["end"]:
        raise ConfigError(f"the block {kind}:{name} does not end; put <!-- end --> on a line after it.")
    if kind != "results":
        return match[0]
    table = find(name)
    found = [read_json(path) for path in _paths(name, results) if path.is_file()]
    parts = [section(table, tree) for tree in found] or [unrun(table)]
    return f"{match['start']}{''.join(parts)}{match['end']}"


def unrun(table: Table) -> str:
    """A table that nobody has run: the paper's numbers alone."""
    sizes = " and ".join(table.sizes)
    command = f"rte reproduce {table.name}" + ("" if "laptop" in table.sizes else f" --size {table.sizes[0]}")
    lines = [f"**Not run.** `{command}` runs it (sizes: {sizes}). {_sentence(table.note)}".strip(), ""]
    cells = [{"row": c.row, "column": c.column, "paper": c.paper, "ours": {}, "runs": []} for c in table.cells]
    if any(cell["paper"] for cell in cells):
        lines += _body(table, table.measures, cells)
    return _closed(lines)


def section(table: Table, tree: Tree) -> str:
    """One table at one size: numbers, cost, and what has to be said about them."""
    lines = [_heading(tree), ""]
    if table.kind == "counts":
        lines += _counts(tree["cells"][0]["classes"])
    else:
        lines += _body(table, tree["measures"], tree["cells"])
    if has_figure(tree):
        lines += ["", f"![{table.title}](images/{figure_name(tree)})"]
    said = [_sentence(table.note), *_remarks(table, tree)]
    lines += [line for text in said if text for line in ("", text)]
    return _closed(lines)


def has_figure(tree: Tree) -> bool:
    """Whether there is something to draw."""
    figures = find(tree["table"]).figures
    runs = [run for cell in tree["cells"] for run in cell["runs"] if run.get("curve") != []]
    if figures:
        return any(name in run for run in runs for name in figures)
    return tree["table"] in ("nstar", "batchsize") and any(cell["ours"] for cell in tree["cells"])


WIDTH = 120
"""Characters of a line of text."""


def _closed(lines: Iterable[str]) -> str:
    wrapped = (line if line.startswith(("|", "!")) else _wrapped(line) for line in lines)
    return "\n".join(wrapped).rstrip() + "\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith(".") else f"{text}."


def _heading(tree: Tree) -> str:
    command = f"rte reproduce {tree['table']}" + (" --size paper" if tree["size"] == "paper" else "")
    command += "".join(f" --set {text}" for text in tree["set"])
    seeds = len(tree["seeds"])
    command += f" --seeds {seeds}" if seeds > 1 else ""
    nets = sorted({str(run["net"]) for cell in tree["cells"] for run in cell["runs"] if "net" in run})
    epochs = sorted({run["epochs"] for cell in tree["cells"] for run in cell["runs"] if "epochs" in run})
    facts = [f"`{command}`", "one seed" if seeds == 1 else f"{seeds} seeds, mean ± standard deviation"]
    if nets:
        facts.append(f"{', '.join(nets)}, {', '.join(map(str, epochs))} epochs")
    if tree["seconds"]:
        facts.append(f"{tree['seconds'] / 60:.0f} minutes of training in all")
    for made in tree["made_with"]:
        where = made["cuda"] or f"{made['cpus']} CPUs"
        facts.append(f"rte {made['rte']} ({made['git'] or 'released'}), torch {made['torch']}, {where}")
    return " · ".join(facts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(n: int) -> str:
    return _row(["---"] + ["---:"] * (n - 1))


def _body(table: Table, measures: Sequence[str], cells: Sequence[Tree]) -> list[str]:
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    if table.compare == "rows" and len(columns) > 1:
        return _matrix(measures, cells, columns)
    return _list(measures, cells, columns)


def _matrix(measures: Sequence[str], cells: Sequence[Tree], columns: Sequence[str]) -> list[str]:
    """Rows by columns; our number, and the paper's in brackets."""
    lines = []
    at = {(cell["row"], cell["column"]): cell for cell in cells}
    for measure in measures:
        head = [f"{MEASURES[measure]}, ours (paper)", *columns]
        lines += [_row(head), _rule(len(head))]
        for row in dict.fromkeys(cell["row"] for cell in cells):
            entries = [_both(at.get((row, column)), measure) for column in columns]
            lines.append(_row([row, *entries]))
        lines.append("")
    return lines[:-1]


def _both(cell: Tree | None, measure: str) -> str:
    if cell is None:
        return ""
    paper = _number(cell["paper"].get(measure))
    return f"{_ours(cell, measure)} ({paper})" if paper != "–" else _ours(cell, measure)


def _list(measures: Sequence[str], cells: Sequence[Tree], columns: Sequence[str]) -> list[str]:
    """One line per cell, with the paper's number and ours for each measure."""
    head = [""] + [f"{MEASURES[measure]}, {who}" for measure in measures for who in ("paper", "ours")]
    lines = [_row(head), _rule(len(head))]
    for cell in cells:
        label = cell["row"] if len(columns) == 1 else f"{cell['row']}, {cell['column']}"
        values = [v for m in measures for v in (_number(cell["paper"].get(m)), _ours(cell, m))]
        lines.append(_row([label, *values]))
    return lines


def _number(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.2f}"


def _ours(cell: Tree, measure: str) -> str:
    if any(run["status"] == "failed" for run in cell["runs"]):
        return "fail"
    found = cell["ours"].get(measure)
    if found is None:
        return "–"
    return f"{found['mean']:.2f}" + ("" if found["spread"] is None else f" ± {found['spread']:.2f}")


def _counts(classes: Sequence[Tree]) -> list[str]:
    head = ["class", "labels, paper", "labels, ours", "right, paper", "right, ours"]
    lines = [_row(head), _rule(len(head))]
    totals = [0.0] * 4
    for entry in classes:
        ours = [sum(entry[name]) / len(entry[name]) if entry[name] else math.nan for name in ("given", "right")]
        values = [entry["paper"]["given"], ours[0], entry["paper"]["right"], ours[1]]
        totals = [a + b for a, b in zip(totals, values, strict=True)]
        lines.append(_row([entry["name"], *map(_whole, values)]))
    return [*lines, _row(["total", *map(_whole, totals)])]


def _whole(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0f}"


def _remarks(table: Table, tree: Tree) -> list[str]:
    """What is different, failed, missing or in another order."""
    out = []
    if table.others:
        quoted = "; ".join(f"{name} {_number(value)} ({column})" for name, column, value in table.others)
        out.append(f"Other work, as the paper quotes it: {quoted}.")
    if tree.get("differs"):  # of results from before: today every table has the paper's noise
        changes = [f"{a}.{b} = {value}" for a, table_ in tree["differs"].items() for b, value in table_.items()]
        out.append(f"Here, unlike in the paper: {', '.join(changes)}.")
    failed = {f"{c['row']}, {c['column']}": r["reason"] for c in tree["cells"] for r in c["runs"] if "reason" in r}
    out += [f"Failed: {label}: {reason}" for label, reason in failed.items()]
    if tree["not_run"]:
        out.append(f"Not run: {'; '.join(tree['not_run'])}.")
    if tree["left_out"]:
        out.append(f"Left out at this size: {'; '.join(tree['left_out'])}.")
    if tree["compared"]:
        out.append(_ordering(tree))
    return out


CLOSE = 2.0
"""Points within which two single runs may differ by chance: two standard errors of a difference between accuracies on
10,000 images are 1.4, and the seed adds to it."""


def _ordering(tree: Tree) -> str:
    turned = tree["reversed"]
    if not turned:
        count = "the one pair" if tree["compared"] == 1 else f"all {tree['compared']} pairs"
        return f"Ordering: as in the paper in {count} that can be compared."
    single = len(tree["seeds"]) == 1
    clear = [entry for entry in turned if entry["apart"] >= CLOSE] if single else turned
    several = len({entry["within"] for entry in turned}) > 1
    pairs = [
        f"{' / '.join(entry['pair'])} ({MEASURES[entry['measure']].removesuffix(' %')}"
        + (f", {entry['within']})" if several else ")")
        for entry in clear
    ]
    said = [f"**The ordering differs from the paper's** in {len(turned)} of {tree['compared']} pairs"]
    if pairs:
        said.append(f": {'; '.join(pairs)}")
    if close := len(turned) - len(clear):
        said.append(
            f". {'A further' if pairs else 'All'} {close} differ by less than {CLOSE:g} points here, "
            "which with one seed may be chance"
        )
    return f"{''.join(said)}."


if __name__ == "__main__":
    for path in update(Path(sys.argv[1])):
        print(path)
