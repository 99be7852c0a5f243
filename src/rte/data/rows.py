"""Rows of a table: which columns are numbers and which categories, and the rows as one array of numbers.

Each value becomes a number: itself, or the place of a category among those of the training rows. NaN stands for a
number that is missing and for a category that the training rows do not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Source
from rte.errors import DataError, did_you_mean

Cells = Sequence[str] | NDArray[np.float64]
"""A column as it is stored: text, or numbers with NaN where one is missing."""
Kind = Literal["number", "category"]

MISSING = frozenset({"", "?", "#n/a", "n/a", "na", "nan", "null", "none", "<na>"})
"""What is written for a missing value, in lower case."""
MOST = 500
"""Categories of a column: of more, the most frequent ones. What occurs once is none where there are `FEW` rows."""
FEW = 100
NAMES = 0.9
"""A column of text with so many distinct values, as a share of the rows, names the rows and teaches nothing."""
WORDS = 3
"""Words of a value, on average, from which a column with many distinct values is free text."""
ROW_NUMBERS = ("id", "index", "row", "row_id", "rowid", "unnamed: 0", "")


@dataclass(frozen=True)
class Column:
    """A column that is learnt from. `missing`: whether a training row lacks its value.

    categories: what the places of a category stand for, "" for a value that is missing. edges: quantiles of a number.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    missing: bool = False


@dataclass(frozen=True)
class TableRows:
    """Rows of a table as numbers, values (N, C), one column for each of `columns`; `rows` picks some of them."""

    columns: tuple[Column, ...]
    values: NDArray[np.float64]
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values) if self.rows is None else len(self.rows)

    def fetch(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """The rows at `index`, (B, C)."""
        found: NDArray[np.float64] = self.values[index if self.rows is None else self.rows[index]]
        return found

    def label(self, i: int) -> str:
        return f"row {i if self.rows is None else int(self.rows[i])}"

    def take(self, rows: NDArray[np.int64]) -> TableRows:
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


def as_rows(source: Source) -> TableRows:
    """The examples as rows of a table, which not all are."""
    if not isinstance(source, TableRows):
        raise DataError("these examples are no rows of a table, which the model was trained on; give a table.")
    return source


def learn_columns(
    cells: Mapping[str, Cells], *, numbers: Sequence[str] = (), categories: Sequence[str] = ()
) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The columns to learn from, by the training rows, and why others are left out. What the user names counts."""
    found, left = [], {}
    for name, column in cells.items():
        there = _present(column)
        if name in numbers or (name not in categories and _are_numbers(there)):
            values = _floats(column, name, lambda i: f"training row {i}")
            known = values[~np.isnan(values)]
            reason = _useless_number(name, known)
            if reason is None or (name in numbers and len(known)):
                found.append(Column(name, "number", missing=len(known) < len(values)))
                continue
        else:
            reason = _useless_category(there, len(column))
            if reason is None or name in categories:
                found.append(_category(name, column))
                continue
        left[name] = reason or "it is empty"
    return tuple(found), left


def to_values(
    columns: Sequence[Column], cells: Mapping[str, Cells], where: str, place: Callable[[int], str]
) -> NDArray[np.float64]:
    """All rows as numbers, (N, C). `where` is the table and place(i) row i, for messages."""
    out = []
    for column in columns:
        if column.name not in cells:
            known = {other.name for other in columns}
            near = did_you_mean(column.name, [name for name in cells if name not in known] or cells)
            raise DataError(f"{where} has no column '{column.name}', which the model was trained on; {near}")
        given = cells[column.name]
        if column.kind == "number":
            out.append(_floats(given, column.name, place))
        else:
            code: dict[str | None, float] = {name: float(k) for k, name in enumerate(column.categories)}
            out.append(np.array([code.get(value, np.nan) for value in as_categories(given)]))
    return np.stack(out, 1) if out else np.zeros((0, 0))


def as_categories(cells: Cells) -> list[str]:
    """The values of a column as categories: text, "" where one is missing; whole numbers without a decimal point."""
    if isinstance(cells, np.ndarray):
        return ["" if np.isnan(v) else f"{int(v)}" if float(v).is_integer() else repr(float(v)) for v in cells]
    blank = {value: "" if value.lower() in MISSING else value for value in set(cells)}
    return [blank[value] for value in cells]


def from_frame(frame: Any, what: str) -> dict[str, Cells]:
    """The columns of a pandas DataFrame: numbers stay numbers, anything else becomes text."""
    cells: dict[str, Cells] = {}
    for label in frame.columns:
        column = frame[label]
        if getattr(column, "ndim", 1) != 1:
            raise DataError(f"{what} has two columns '{label}'; give each its own name.")
        if column.dtype.kind in "fiu":
            cells[str(label)] = column.to_numpy(np.float64, na_value=np.nan)
        else:
            lacking = column.isna().to_numpy()
            cells[str(label)] = ["" if no else str(value) for value, no in zip(column, lacking, strict=True)]
    return cells


def is_frame(X: Any) -> bool:
    """Whether X is a DataFrame of pandas, which is not imported for that."""
    return type(X).__module__.partition(".")[0] == "pandas" and getattr(X, "ndim", 0) == 2


def is_mixed(frame: Any) -> bool:
    """Whether a DataFrame holds more than numbers: categories, or values that are missing."""
    return bool(any(dtype.kind not in "fiu" for dtype in frame.dtypes) or frame.isna().to_numpy().any())


def frame_rows(frame: Any, columns: Sequence[Column] | None = None) -> TableRows:
    """The rows of a DataFrame, by the `columns` that a model was trained on, or by those that it has."""
    cells = from_frame(frame, "X")
    if columns is None:
        given = [str(label) for label, kind in frame.dtypes.items() if kind.name == "category"]
        columns, left = learn_columns(cells, categories=given)
        if not columns:
            raise DataError(f"X has no column to learn from ({'; '.join(f'{k}: {v}' for k, v in left.items())}).")
    return TableRows(tuple(columns), to_values(columns, cells, "X", lambda i: f"row {i} of X"))


def _present(cells: Cells) -> Cells:
    if isinstance(cells, np.ndarray):
        return cells[~np.isnan(cells)]
    return [value for value in as_categories(cells) if value]


def _are_numbers(there: Cells) -> bool:
    """Whether all values are numbers; codes with leading zeros, such as postal codes, are none."""
    if isinstance(there, np.ndarray):
        return True
    if any(value[0] == "0" and value[1:2].isdigit() for value in there):
        return False
    try:
        return bool(there) and bool(np.isfinite(np.array(there, dtype=np.float64)).all())
    except ValueError:
        return False


def _floats(cells: Cells, name: str, place: Callable[[int], str]) -> NDArray[np.float64]:
    if isinstance(cells, np.ndarray):
        values = np.array(cells, np.float64)
    else:
        try:
            values = np.array([value or "nan" for value in as_categories(cells)], dtype=np.float64)
        except ValueError:
            i = next(i for i, value in enumerate(as_categories(cells)) if value and not is_number(value))
            raise DataError(
                f"{name} of {place(i)} is '{cells[i]}', and the column holds numbers; correct it, or leave it empty."
            ) from None
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(f"{name} of {place(int(infinite[0]))} is infinite; correct it, or leave it empty.")
    return values


def is_number(text: str) -> bool:
    """Whether text is a number as programs write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _useless_number(name: str, known: NDArray[np.float64]) -> str | None:
    distinct = len(np.unique(known))
    if distinct < 2:
        return "it never varies"
    if name.strip().lower() in ROW_NUMBERS and distinct == len(known) and (known == np.rint(known)).all():
        return "it numbers the rows"
    return None


def _useless_category(there: Cells, n: int) -> str | None:
    values = list(map(str, there))
    distinct = set(values)
    if not values:
        return "it is empty"
    if len(distinct) < 2 and len(values) == n:
        return "it never varies"
    if 2 * len(distinct) > len(values) > FEW and sum(len(value.split()) for value in distinct) > WORDS * len(distinct):
        return "it is free text, see --text"
    if len(distinct) > max(NAMES * len(values), 20):
        return "it names the rows"
    return None


def _category(name: str, cells: Cells) -> Column:
    count = Counter(as_categories(cells))
    least = 2 if len(cells) >= FEW else 1
    kept = [value for value, times in count.most_common(MOST) if times >= least]
    return Column(name, "category", tuple(sorted(kept)), missing="" in count)
