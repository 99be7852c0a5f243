"""results/TABLE.json: our numbers beside the paper's, made from the run folders alone."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rte.files import read_json, write_json
from rte.reproduce.define import Cell, Table
from rte.reproduce.measure import taken
from rte.reproduce.plan import SMALL, Job, Options, check_same, job_of
from rte.reproduce.runner import state

Tree = dict[str, Any]


def summarise(table: Table, options: Options, out: Path) -> Tree:
    """Everything that is there of a table."""
    cells = [_cell(table, cell, options, out) for cell in table.at(options.size, options.only)]
    left = {cell.title for cell in table.cells} - {f"{cell['row']}, {cell['column']}" for cell in cells}
    compared = pairs(table, cells)
    tree: Tree = {
        "table": table.name,
        "title": table.title,
        "source": table.source,
        "size": options.size,
        "preset": options.preset or ("the paper's" if options.size == "paper" else SMALL),
        "set": list(options.overrides),
        "seeds": list(range(options.seeds)),
        "measures": list(table.measured(options.size)),
        "note": table.note,
        "cells": cells,
        "seconds": round(sum(run.get("seconds", 0.0) for run in _unique(cells)), 1),
        "made_with": _made_with([out / run["folder"] for run in _unique(cells)]),
        "not_run": [f"{cell['row']}, {cell['column']}" for cell in cells if _waits(cell)],
        "left_out": [cell.title for cell in table.cells if cell.title in left],
        "compared": len(compared),
        "reversed": [entry for entry in compared if entry.pop("reversed")],
    }
    return tree


def write(tree: Tree, results: Path) -> Path:
    """Keep a summary as results/TABLE.json; those of the paper's size in a folder of their own."""
    folder = results / "paper" if tree["size"] == "paper" else results
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tree['table']}.json"
    write_json(path, tree)
    return path


def _cell(table: Table, cell: Cell, options: Options, out: Path) -> Tree:
    jobs = [job_of(table, cell, options, seed) for seed in range(options.seeds)]
    runs = [_run(job, table, out) for job in jobs]
    ours = {}
    for name in table.measured(options.size):
        values = [run[name] for run in runs if run.get(name) is not None]
        if values:
            ours[name] = {"mean": round(statistics.mean(values), 2), "spread": _spread(values), "values": values}
    tree: Tree = {"row": cell.row, "column": cell.column, "paper": cell.paper, "ours": ours, "runs": runs}
    if table.kind == "counts":
        tree["classes"] = _counts(jobs, out)
    return tree


def _spread(values: list[float]) -> float | None:
    """The standard deviation over seeds; unknown for one."""
    return round(statistics.stdev(values), 2) if len(values) > 1 else None


def _run(job: Job, table: Table, out: Path) -> Tree:
    """What one run folder says."""
    folder, there = out / job.folder, state(job, out)
    tree: Tree = {"seed": job.config.seed, "folder": job.folder, "digest": job.config.digest}
    if there.failed:
        return {**tree, "status": "failed", "reason": there.failed}
    if not there.trained:
        return {**tree, "status": "not run"}
    if job.kind == "counts":
        return {**tree, "status": "done"}
    if job.kind == "run":
        check_same(folder, job.config)
    result, measured = read_json(folder / "result.json"), taken(folder)
    test, memory = result.get("test", {}), result.get("memorisation") or {}
    tree |= {"status": "done", "digest": result["digest"], "seconds": result["train_seconds"]}
    tree |= {"accuracy": _percent(test.get("last")), "last5": _percent(test.get("last5"))}
    tree |= {"top5": _percent(test.get("top5")), "ece": test.get("ece"), "memorised": _percent(memory.get("memorised"))}
    noise = result["noise"]
    wrong = noise.get("trained", noise["measured"])
    tree |= {"epochs": result["epochs"], "net": result["net"], "wrong_labels": _percent(wrong)}
    if "mce" in measured:
        tree["mce"] = _percent(measured["mce"]["mce"])
    if "curve" in table.figures:
        measured["curve"] = _curve(folder / "journal.jsonl")
    tree |= {name: measured[name] for name in table.figures if name in measured}
    return tree


def _curve(journal: Path) -> list[tuple[int, float]]:
    """Test accuracy in percent after each epoch at whose end it was taken."""
    entries = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    return [(e["epoch"], round(100 * e["test"]["top1"], 2)) for e in entries if e["event"] == "epoch" and "test" in e]


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _counts(jobs: list[Job], out: Path) -> list[Tree]:
    """Labels given and right ones among them, by class and seed, beside the paper's."""
    from rte.reproduce.tables import SAMPLED

    manifests = [read_json(path) for job in jobs if (path := out / job.folder / "noise.json").is_file()]
    return [
        {
            "name": name,
            "paper": {"given": given, "right": right},
            "given": [sum(row[k] for row in manifest["counts"]) for manifest in manifests],
            "right": [manifest["counts"][k][k] for manifest in manifests],
        }
        for k, (name, (given, right)) in enumerate(SAMPLED.items())
    ]


def _waits(cell: Tree) -> bool:
    return any(run["status"] == "not run" for run in cell["runs"])


def _unique(cells: list[Tree]) -> list[Tree]:
    """Each finished run once, though several cells may show it."""
    return list({run["folder"]: run for cell in cells for run in cell["runs"] if run["status"] == "done"}.values())


def _made_with(folders: list[Path]) -> list[Tree]:
    """The versions and machines of the runs, each once."""
    keys = ("rte", "git", "python", "torch", "numpy", "cpus", "cuda")
    found: list[Tree] = []
    for path in (folder / "environment.json" for folder in folders):
        if path.is_file():
            environment = read_json(path)
            entry = {name: environment.get(name) for name in keys}
            if entry not in found:
                found.append(entry)
    return found


def pairs(table: Table, cells: list[Tree]) -> list[Tree]:
    """Pairs of cells within a column (or row): how far apart ours are, and whether the paper's are the other way round.

    A failed run is below all others. Pairs that are equal in the paper say nothing.
    """
    along, across = ("column", "row") if table.compare == "rows" else ("row", "column")
    found = []
    for measure in table.measures:
        for i, a in enumerate(cells):
            for b in cells[i + 1 :]:
                if a[along] != b[along]:
                    continue
                theirs, ours = _apart(_paper, a, b, measure), _apart(_ours, a, b, measure)
                if ours is None or not theirs:
                    continue
                turned = theirs * ours < 0
                pair = {"measure": measure, "within": a[along], "pair": [a[across], b[across]], "reversed": turned}
                found.append({**pair, "apart": round(min(abs(ours), 100.0), 2)})
    return found


def _apart(value: Callable[[Tree, str], float | None], a: Tree, b: Tree, measure: str) -> float | None:
    """How much higher a is than b, if both are known."""
    first, second = value(a, measure), value(b, measure)
    return None if first is None or second is None else first - second


LOWEST = -1e9


def _paper(cell: Tree, measure: str) -> float | None:
    value = cell["paper"].get(measure)
    return LOWEST if value == "fail" else value


def _ours(cell: Tree, measure: str) -> float | None:
    if any(run["status"] == "failed" for run in cell["runs"]):
        return LOWEST if measure == "accuracy" else None
    found = cell["ours"].get(measure)
    return None if found is None else float(found["mean"])
