"""What the review tool shows: the most suspicious examples, column by column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.audit.records import FINE, KINDS, Rows
from rte.data.rows import Column, TableRows
from rte.data.text import Texts
from rte.data.types import Embedded, Images, Source, Vectors
from rte.errors import UserError
from rte.report.page.embed import as_script
from rte.report.page.material import Material
from rte.report.page.pictures import ACROSS, PER_SHEET, Sheets, sheets

MOST = 10_000
"""Examples on a page."""
LABEL_BYTES = 3_000_000
"""For the ids and labels of all examples, from which the page makes a label file; larger sets need `rte audit`."""
NUMBERS = 8
"""Of a vector, how many are shown, and columns of a row."""
LETTERS = 400
"""Of a text."""


def suspects(m: Material, *, most_bytes: int, seconds: float) -> dict[str, Any] | None:
    """The rows and pictures of a run's review tool; None where there is no audit, or nothing is suspicious."""
    if m.audit is None:
        return None
    rows = m.audit.rows
    doubtful = np.flatnonzero((rows.kind != FINE) | rows.is_label_issue)[:MOST]
    if not len(doubtful):
        return None
    everything = every_label(rows)
    rows = rows.only(doubtful)
    tree = {
        "run": m.identity,
        "classes": list(m.audit.classes),
        "kinds": list(KINDS),
        "total": m.audit.summary["n"],
        "issues": m.audit.summary["issues"],
        "all": everything if weight(everything) <= LABEL_BYTES else None,
        **columns(rows),
    }
    return tree | looks(m, rows, most_bytes - weight(tree), seconds)


def columns(rows: Rows) -> dict[str, Any]:
    """The table as lists."""
    return {
        "index": rows.index.tolist(),
        "id": list(rows.id),
        "given": rows.given_label.tolist(),
        "suggested": rows.predicted_label.tolist(),
        "second": rows.second_label.tolist(),
        "score": rounded(rows.label_score),
        "pGiven": rounded(rows.given_probability),
        "pSuggested": rounded(rows.predicted_probability),
        "kind": rows.kind.tolist(),
        "duplicate": {k: name for k, name in enumerate(rows.duplicate_of) if name},
        "reviewed": {str(i): word for i, word in rows.reviewed.items()},
    }


def every_label(rows: Rows) -> dict[str, Any]:
    """Index, id and given label of all examples in the order of the data; ids are left out where they are the index."""
    order = np.argsort(rows.index)
    ids = [rows.id[k] for k in order.tolist()]
    index = rows.index[order].tolist()
    numbered = all(name == str(i) for name, i in zip(ids, index, strict=True))
    return {"index": index, "id": None if numbered else ids, "given": rows.given_label[order].tolist()}


def looks(m: Material, rows: Rows, most_bytes: int, seconds: float) -> dict[str, Any]:
    """Thumbnails of images, or words for anything else; neither where the data is not at hand."""
    source = m.source.images if isinstance(m.source, Embedded) else m.source
    if isinstance(source, Images):
        made = _pictures(lambda: sheets(source, rows.index, most=max(0, most_bytes), seconds=seconds))
        return {"side": made.side, "across": ACROSS, "perSheet": PER_SHEET, "shown": made.shown, "sheets": made.sheets}
    values = in_words(source, rows.index)
    return {"values": values} if values else {}


def _pictures(make: Callable[[], Sheets]) -> Sheets:
    """None rather than no page, where a file that was read in training cannot be read any more."""
    try:
        return make()
    except (UserError, OSError):
        return Sheets()


def in_words(source: Source | None, index: NDArray[np.int64]) -> list[str]:
    """What stands for a picture: a text, the first columns of a row, the first numbers of a vector."""
    if isinstance(source, Texts):
        return [text if len(text) <= LETTERS else text[: LETTERS - 1] + "…" for text in source.fetch(index)]
    if isinstance(source, TableRows):
        return [_row(source.columns, row) for row in source.fetch(index)]
    if isinstance(source, Vectors):
        end = " …" if source.dim > NUMBERS else ""
        return [" ".join(f"{v:.3g}" for v in row) + end for row in source.fetch(index)[:, :NUMBERS].tolist()]
    return []


def _row(columns: Sequence[Column], row: NDArray[np.float64]) -> str:
    cells = []
    for column, value in list(zip(columns, row.tolist(), strict=True))[:NUMBERS]:
        if math.isnan(value):
            cells.append(f"{column.name} –")
        elif column.kind == "category":
            cells.append(f"{column.name} {column.categories[int(value)] or '–'}")
        else:
            cells.append(f"{column.name} {value:.6g}")
    return ", ".join(cells) + (", …" if len(columns) > NUMBERS else "")


def rounded(values: NDArray[np.float32]) -> list[float]:
    """Shares with four decimals; more would be bytes for nothing."""
    return [float(v) for v in np.round(values.astype(np.float64), 4)]


def weight(tree: dict[str, Any]) -> int:
    """The bytes of a tree in the page."""
    return len(as_script(tree))
