"""The columns of a table as text: CSV or TSV (also .gz), or Parquet."""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from rte.errors import DataError

TEXTS = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz")
PARQUET = (".parquet", ".pq")
SUFFIXES = (*TEXTS, *PARQUET)


@dataclass(frozen=True)
class Columns:
    """Some or all rows of a table. `values` are those of each column, stripped; "" where a value is missing."""

    file: Path
    names: tuple[str, ...]
    values: dict[str, list[str]]
    lines: list[int]
    """Where each row ends in the file: its line, or its number in a Parquet file."""

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """What a message calls a row."""
        return f"{'row' if is_parquet(self.file) else 'line'} {self.lines[row]} of {self.file}"


def is_parquet(file: Path) -> bool:
    """Whether a file is Parquet, by its name."""
    return file.suffix.lower() in PARQUET


def read(file: Path, most: int | None = None) -> Columns:
    """The columns of a table, of its first `most` rows or of all."""
    if is_parquet(file):
        return _parquet(file, most)
    rows = _rows(file)
    names = next(rows)[1]
    kept = list(rows if most is None else itertools.islice(rows, most))
    by_column = zip(*(values for _, values in kept), strict=True) if kept else ([] for _ in names)
    values = {name: list(column) for name, column in zip(names, by_column, strict=True)}
    return Columns(file, tuple(names), values, [line for line, _ in kept])


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of each row, the first line among them; commas, semicolons or tabs part the fields."""
    number = 1
    try:
        with _opened(file) as text:
            header = text.readline()
            if not header.strip():
                raise DataError(
                    f"{file} begins with an empty line; its first line must name the columns, such as path and label."
                )
            separator = max(",;\t", key=header.count)
            names = [name.strip() for name in next(csv.reader([header], delimiter=separator))]
            if len(set(names)) < len(names):
                raise DataError(
                    f"{file} names a column twice in its first line ({', '.join(names)}); give each its own name."
                )
            yield 1, names
            reader = csv.reader(text, delimiter=separator, strict=True)
            for values in reader:
                number = reader.line_num + 1
                if not any(value.strip() for value in values):
                    continue
                if len(values) != len(names):
                    raise DataError(
                        f"line {number} of {file} has {len(values)} fields but there are {len(names)} columns; "
                        "correct the line (a value with a comma in it needs quotation marks)."
                    )
                yield number, [value.strip() for value in values]
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text after line {number} ({error.reason}); save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{file} cannot be read after line {number} ({error}); check its quotation marks.") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{file} is no complete .gz file ({error}); copy it again.") from None


def _opened(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", newline="", encoding="utf-8-sig")
    return file.open(newline="", encoding="utf-8-sig")


def _parquet(file: Path, most: int | None) -> Columns:
    if find_spec("pyarrow") is None:
        raise DataError(f"{file} is Parquet, which needs pyarrow; pip install pyarrow, or write it as .csv.")
    import pyarrow
    from pyarrow import parquet

    try:
        stored = parquet.ParquetFile(file)
        names = tuple(stored.schema_arrow.names)
        nested = [name for name in names if pyarrow.types.is_nested(stored.schema_arrow.field(name).type)]
        plain = [name for name in names if name not in nested]
        values: dict[str, list[str]] = {name: [] for name in plain}
        for batch in stored.iter_batches(columns=plain):
            for name in plain:
                values[name] += map(_text, batch.column(name).to_pylist())
            if most is not None and all(len(column) >= most for column in values.values()):
                break
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file} cannot be read as Parquet ({str(error).splitlines()[0]}); write it again.") from None
    values = {name: column[:most] for name, column in values.items()}
    return Columns(file, names, values, list(range(1, 1 + max(map(len, values.values()), default=0))))


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape").strip()
    return str(value).strip()
