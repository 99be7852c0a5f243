"""Predictions written down: CSV, JSON lines or Parquet, block by block."""

from __future__ import annotations

import codecs
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np

from rte.audit.records import parquet
from rte.errors import UserError
from rte.files import write_atomic
from rte.run.predictions import Block

ENDINGS = (".csv", ".jsonl", ".parquet")


def refuse_form(path: Path) -> None:
    """Refuse, before the work, a file whose name tells no form, or one that cannot be written here."""
    if path.suffix.lower() not in ENDINGS:
        raise UserError(f"--out {path} tells no form; choose a name that ends in .csv, .jsonl or .parquet.")
    if path.suffix.lower() == ".parquet":
        parquet()


def write(blocks: Iterable[Block], classes: Sequence[str], out: Path | None, *, top: int, shares: bool) -> int:
    """All predictions, to a file or to the terminal as CSV; returns how many. `shares`: the probability of each class.

    Columns: image, label, confidence; label_2, confidence_2 and so on, up to `top`; one of each class's name.
    """
    rows = Rows(classes, min(top, len(classes)), shares)
    if out is None:
        return _csv(sys.stdout, rows, blocks)
    done = 0

    def text(file: IO[bytes]) -> TextIO | codecs.StreamWriter:  # names of files that are no Unicode stay as they are
        return codecs.getwriter("utf-8")(file, "surrogateescape")

    def make(file: IO[bytes]) -> None:
        nonlocal done
        match out.suffix.lower():
            case ".parquet":
                done = _parquet(file, rows, blocks)
            case ".jsonl":
                done = _jsonl(text(file), rows, blocks)
            case _:
                done = _csv(text(file), rows, blocks)

    write_atomic(out, make)
    return done


class Rows:
    """The columns of the predictions, and their values."""

    def __init__(self, classes: Sequence[str], top: int, shares: bool) -> None:
        self.classes, self.top, self.shares = classes, top, shares
        further = [name for k in range(2, top + 1) for name in (f"label_{k}", f"confidence_{k}")]
        self.columns = ["image", "label", "confidence", *further, *(classes if shares else ())]

    def of(self, block: Block) -> Iterator[list[Any]]:
        """The rows of a block."""
        best = np.argsort(-block.probabilities, axis=1, kind="stable")[:, : self.top]
        for name, p, order in zip(block.names, block.probabilities, best, strict=True):
            ranked = [value for k in order for value in (self.classes[k], round(float(p[k]), 6))]
            yield [name, *ranked, *([round(float(share), 6) for share in p] if self.shares else [])]


def _csv(file: TextIO | codecs.StreamWriter, rows: Rows, blocks: Iterable[Block]) -> int:
    done, out, begun = 0, csv.writer(file), False
    for block in blocks:
        if not begun:  # not before anything is known to be readable
            out.writerow(rows.columns)
            begun = True
        for row in rows.of(block):
            out.writerow([f"{value:.6f}" if isinstance(value, float) else value for value in row])
            done += 1
    if not begun:
        out.writerow(rows.columns)
    return done


def _jsonl(file: TextIO | codecs.StreamWriter, rows: Rows, blocks: Iterable[Block]) -> int:
    done, plain = 0, 1 + 2 * rows.top
    for block in blocks:
        for row in rows.of(block):
            line = dict(zip(rows.columns[:plain], row[:plain], strict=True))
            if rows.shares:
                line["probabilities"] = dict(zip(rows.classes, row[plain:], strict=True))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            done += 1
    return done


def _parquet(file: IO[bytes], rows: Rows, blocks: Iterable[Block]) -> int:
    arrow = parquet()
    ranked = 2 * rows.top  # columns of labels and confidences in turn
    kinds = [arrow.string() if k == 0 or (k <= ranked and k % 2) else arrow.float64() for k in range(len(rows.columns))]
    schema, done = arrow.schema(list(zip(rows.columns, kinds, strict=True))), 0
    with arrow.parquet.ParquetWriter(file, schema) as out:
        for part in _gathered(blocks):
            table = [row for block in part for row in rows.of(block)]
            columns = [list(values) for values in zip(*table, strict=True)]
            columns[0] = [name.encode("utf-8", "replace").decode() for name in columns[0]]
            arrays = [arrow.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
            out.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            done += len(table)
    return done


def _gathered(blocks: Iterable[Block], rows: int = 10_000) -> Iterator[list[Block]]:
    """Blocks together until they are many rows: a group of a Parquet file should be large."""
    part: list[Block] = []
    for block in blocks:
        part.append(block)
        if sum(len(each.names) for each in part) >= rows:
            yield part
            part = []
    if part:
        yield part
