"""What an audit leaves behind: audit.csv, a row per training example, and audit.json, what they come to together.

Both are plain and may be read by other programs. Ids and names of classes that a spreadsheet might take for formulas
have an apostrophe before them in a .csv file; `read` takes it away again.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from rte.data.ids import cell, uncell
from rte.errors import UserError
from rte.files import read_json, write_atomic, write_json

VERSION = 1
STEM = "audit"
TABLE, SUMMARY = f"{STEM}.csv", f"{STEM}.json"
KINDS = ("", "wrong label", "ambiguous", "no class", "duplicate")
"""What may be the matter with an example, by the number that stands for it in `Rows.kind`."""
FINE, WRONG, AMBIGUOUS, NO_CLASS, DUPLICATE = range(len(KINDS))
BLOCK = 50_000
"""Rows that are turned into text at once."""
Singles = NDArray[np.float32]
Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Rows:
    """The table, most suspicious example first. Each field is a column, (N,), and has its name.

    Labels are numbers of classes; -1 where there is none. `kind` are places in `KINDS`. `reviewed` holds the decisions
    of people by `index`.
    """

    index: NDArray[np.int64]
    id: Sequence[str]
    given_label: Numbers
    predicted_label: Numbers
    label_score: Singles
    is_label_issue: NDArray[np.bool_]
    given_probability: Singles
    predicted_probability: Singles
    kind: NDArray[np.uint8]
    second_label: Numbers
    ambiguity: Singles
    no_class_score: Singles
    duplicate_of: Sequence[str]
    reviewed: dict[int, str]

    def __len__(self) -> int:
        return len(self.index)

    def only(self, order: NDArray[np.int64]) -> Rows:
        """Some of the rows, in a given order."""
        picked: dict[str, Any] = {}
        for field in fields(self):
            values = getattr(self, field.name)
            picked[field.name] = values[order] if isinstance(values, np.ndarray) else values
        kept = {int(i) for i in picked["index"]}
        picked["id"] = [self.id[int(i)] for i in order]
        picked["duplicate_of"] = [self.duplicate_of[int(i)] for i in order]
        picked["reviewed"] = {i: word for i, word in self.reviewed.items() if i in kept}
        return Rows(**picked)


COLUMNS = tuple(field.name for field in fields(Rows))
LABELS = ("given_label", "predicted_label", "second_label")
TEXTS = (*LABELS, "id", "kind", "duplicate_of", "reviewed")


@dataclass(frozen=True)
class Audit:
    """The rows of an audit and its summary: what `audit.csv` and `audit.json` hold."""

    rows: Rows
    summary: dict[str, Any]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, by number."""
        return tuple(self.summary["classes"])

    def write(self, folder: Path, stem: str = STEM) -> None:
        """Both files, into a run folder; of other data than the training set by another name."""
        write_table(folder / f"{stem}.csv", self.rows, self.classes)
        write_json(folder / f"{stem}.json", {"version": VERSION, **self.summary})

    def reviewed(self, decisions: dict[int, str]) -> Self:
        """The same with people's decisions, by `index`."""
        return replace(self, rows=replace(self.rows, reviewed=decisions))


def text_of(rows: Rows, classes: Sequence[str], part: slice) -> dict[str, list[Any]]:
    """The columns of some rows as they stand in a file: numbers, truth values and names."""
    index = rows.index[part].tolist()
    columns: dict[str, list[Any]] = {
        "id": list(rows.id[part]),
        "duplicate_of": list(rows.duplicate_of[part]),
        "kind": [KINDS[k] for k in rows.kind[part].tolist()],
        "reviewed": [rows.reviewed.get(i, "") for i in index],
    }
    for name in LABELS:
        columns[name] = [classes[k] if k >= 0 else "" for k in getattr(rows, name)[part].tolist()]
    return {name: columns[name] if name in columns else getattr(rows, name)[part].tolist() for name in COLUMNS}


def blocks(rows: Rows, classes: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """All rows by and by, so that never the text of all of them is in memory."""
    for start in range(0, len(rows), BLOCK):
        yield text_of(rows, classes, slice(start, start + BLOCK))


def write_table(path: Path, rows: Rows, classes: Sequence[str]) -> None:
    """The table as .csv or .parquet, by the name of the file."""
    if path.suffix == ".parquet":
        write_atomic(path, partial(_write_parquet, rows, classes))
    else:
        write_csv(path, blocks(rows, classes))


def write_csv(path: Path, parts: Iterator[dict[str, list[Any]]]) -> None:
    """Blocks of columns as one .csv file, its texts safe in a spreadsheet."""

    def write(file: IO[bytes]) -> None:
        # names of files that are no Unicode stay the bytes they are
        out = csv.writer(codecs.getwriter("utf-8")(file, "surrogateescape"))
        for k, part in enumerate(parts):
            if not k:
                out.writerow(part)
            out.writerows(zip(*(_cells(values) for values in part.values()), strict=True))

    write_atomic(path, write)


def _cells(values: list[Any]) -> list[str]:
    if values and isinstance(values[0], float):
        return [f"{value:.6g}" for value in values]
    if values and isinstance(values[0], str):
        return [cell(value) for value in values]
    return [str(value) for value in values]


def check_table(path: Path) -> None:
    """Refuse, before the work, a table of a kind that cannot be written."""
    if path.suffix not in (".csv", ".parquet"):
        raise UserError(f"--out {path} is neither .csv nor .parquet; choose a name that ends so.")
    if path.suffix == ".parquet":
        parquet()


def parquet() -> Any:
    """pyarrow with its reader and writer of .parquet files, or a sentence on how to get it."""
    if find_spec("pyarrow") is None:
        raise UserError(
            "a .parquet file needs pyarrow; install it with `pip install 'robust-temporal-ensembling[audit]'`, or take "
            "a name that ends in .csv."
        )
    import pyarrow.parquet

    return pyarrow


def _write_parquet(rows: Rows, classes: Sequence[str], file: IO[bytes]) -> None:
    pa = parquet()
    writer = None
    for part in blocks(rows, classes):
        kinds = {"index": pa.int64(), "is_label_issue": pa.bool_(), **dict.fromkeys(TEXTS, pa.string())}
        clean = {name: [_unicode(v) for v in part[name]] if name in TEXTS else part[name] for name in part}
        table = pa.table({name: pa.array(values, kinds.get(name, pa.float32())) for name, values in clean.items()})
        writer = writer or pa.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _unicode(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read(folder: Path | str) -> Audit:
    """The audit in a run folder."""
    folder = Path(folder)
    if not (folder / SUMMARY).is_file() or not (folder / TABLE).is_file():
        raise UserError(f"{folder} has no audit (no {TABLE} with {SUMMARY}); make it with `rte audit {folder}`.")
    summary = read_json(folder / SUMMARY)
    if not isinstance(summary, dict) or summary.get("version") != VERSION:
        raise UserError(f"{folder / SUMMARY} is of another version of rte; make the audit again: `rte audit {folder}`.")
    return Audit(read_table(folder / TABLE, summary["classes"]), summary)


def read_table(path: Path, classes: Sequence[str]) -> Rows:
    """The rows of a .csv file that `write_table` wrote."""
    places = {name: k for k, name in enumerate(classes)} | {"": -1}
    numbers: dict[str, Callable[[str], Any]] = {
        "index": int,
        "is_label_issue": "True".__eq__,
        "kind": {name: k for k, name in enumerate(KINDS)}.__getitem__,
        **dict.fromkeys(LABELS, lambda text: places[uncell(text)]),
        **dict.fromkeys(("id", "duplicate_of", "reviewed"), uncell),
    }
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    line = 1
    try:
        with path.open("rb") as file:
            lines = csv.reader(io.TextIOWrapper(file, "utf-8", errors="surrogateescape", newline=""))
            header = next(lines, [])
            read_cell = [numbers.get(name, float) for name in COLUMNS]
            where = [header.index(name) for name in COLUMNS]
            for values in lines:
                line = lines.line_num
                for name, make, k in zip(COLUMNS, read_cell, where, strict=True):
                    columns[name].append(make(values[k]))
    except (ValueError, KeyError, IndexError, csv.Error) as error:
        raise UserError(f"line {line} of {path} cannot be read ({error}); make the audit again.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); make the audit again.") from None
    kinds: dict[str, Any] = {
        "index": np.int64,
        "is_label_issue": np.bool_,
        "kind": np.uint8,
        **dict.fromkeys(LABELS, np.int32),
    }
    said = {i: word for i, word in zip(columns["index"], columns.pop("reviewed"), strict=True) if word}
    made: dict[str, Any] = {
        name: values if name in ("id", "duplicate_of") else np.array(values, kinds.get(name, np.float32))
        for name, values in columns.items()
    }
    return Rows(**made, reviewed=said)
