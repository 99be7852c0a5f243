"""The file itself: the template filled in, nothing fetched from anywhere, nothing run that is not its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import rte
from rte.files import write_atomic
from rte.report.page import panels, words
from rte.report.page.embed import as_script, policy
from rte.report.page.material import Material, examples, of_folder
from rte.report.page.suspects import suspects
from rte.report.tables import percent
from rte.run.audit import Auditor
from rte.run.measured import look_back

FILE = "report.html"
MOST_BYTES = 14_000_000
"""Of the whole page; what is left beside the pictures is small."""
FIXED_BYTES = 400_000
"""For a run's charts and tables, the script and the style."""
HERE = Path(__file__).parent


def write_page(runs: Sequence[Material], path: Path, *, seconds: float = 600.0) -> None:
    """The page of one run or of several side by side; pictures take about so many seconds."""
    text = page(runs, seconds=seconds)
    # names of files that are no Unicode: their text is in the data, where they are escaped; elsewhere a mark will do
    write_atomic(path, lambda file: file.write(text.encode("utf-8", "replace")))


def page(runs: Sequence[Material], *, seconds: float = 600.0) -> str:
    """The page as text."""
    places = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script, style = ((HERE / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    room = MOST_BYTES // len(runs) - FIXED_BYTES
    shown = [one_run(m, room, seconds / len(runs)) for m in runs]
    heading = shown[0]["title"] if len(runs) == 1 else f"{len(runs)} runs"
    return places.get_template("page.html").render(
        heading=heading,
        runs=shown,
        compared=compared(runs) if len(runs) > 1 else None,
        script=Markup(script),
        style=Markup(style),
        policy=policy(script, style),
        version=rte.__version__,
        written=time.strftime("%Y-%m-%d %H:%M"),
    )


def one_run(m: Material, room: int, seconds: float) -> dict[str, Any]:
    """What the template shows of a run."""
    found = suspects(m, most_bytes=room, seconds=seconds)
    return {
        "name": m.name,
        "title": words.title(m),
        "facts": words.facts(m),
        "notes": m.notes,
        "warning": m.result.get("noise", {}).get("warning"),
        "sentence": m.audit.summary["sentence"] if m.audit is not None else "",
        "numbers": words.numbers(m),
        "steps": words.next_steps(m),
        "training": panels.training([m]),
        "labels": list(panels.labels(m)),
        "predictions": list(panels.predictions(m)),
        "command": words.command(m),
        "made": words.made(m),
        "settings": list(words.settings(m.config)),
        "suspects": found,
        "data": Markup(as_script(found)) if found else None,
    }


def compared(runs: Sequence[Material]) -> dict[str, Any]:
    """Runs side by side: a row of numbers each, and their curves together."""
    header = (
        "run",
        "method",
        "network",
        "accuracy",
        "student",
        "calibration error",
        "memorised",
        "wrong labels",
        "time",
    )
    rows = []
    for m in runs:
        test, student, memory = (m.result.get(name) or {} for name in ("test", "student", "memorisation"))
        cells = [test.get("last"), student.get("last"), test.get("ece"), memory.get("memorised")]
        found = m.audit.summary["noise"]["rate"] if m.audit is not None else None
        rows.append(
            (
                m.name,
                m.method,
                str(m.result.get("net", "–")),
                *(_share(value) for value in [*cells, found]),
                words.duration(m.result["train_seconds"]) if "train_seconds" in m.result else "–",
            )
        )
    return {"header": header, "rows": rows, "panels": panels.training(runs)}


def _share(value: float | None) -> str:
    return "–" if value is None else f"{percent(value)} %"


def page_of(folder: Path, auditor: Auditor, *, data_dir: Path | None = None, seconds: float = 30.0) -> Path:
    """Audit, measure and show a method that has just been trained; returns where the page is."""
    look_back(folder, auditor, data_dir)
    path = folder / FILE
    write_page([of_folder(folder, examples(auditor, folder, data_dir))], path, seconds=seconds)
    return path
