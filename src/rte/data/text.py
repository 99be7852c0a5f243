"""A table of texts, which a run embeds by a trained model before it trains on the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data._columns import Columns, read
from rte.data._own import Own, finished
from rte.data._places import find
from rte.data._roles import Roles, named
from rte.data._target import find_target
from rte.data._useless import leave_out
from rte.data.types import Dataset
from rte.errors import DataError
from rte.settings import setting

KIND = "vectors"
SUMMARY = "your own texts: .csv, .tsv or .parquet with a column of texts and the target in another one"

PACKAGED = "all-MiniLM-L6-v2"
"""The model of the extra `text`: 384 numbers for each text, the first 256 tokens of it."""


class Config(Own):
    """Which table, and by which model its texts are embedded."""

    path: str = setting(..., "the table, from here or from the data folder")
    model: str = setting(PACKAGED, "a sentence-transformers model: this one, a folder, or a name on the hub")
    model_sha256: str | None = setting(None, "of its weights; a run records it, and goes on with no others")


@dataclass(frozen=True)
class Texts:
    """Texts in the order of their table; `rows` picks some of them."""

    values: Sequence[str]
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values) if self.rows is None else len(self.rows)

    def fetch(self, index: NDArray[np.int64]) -> list[str]:
        """The texts at `index`."""
        return [self.values[i] for i in (index if self.rows is None else self.rows[index])]

    def label(self, i: int) -> str:
        return f"text {i if self.rows is None else int(self.rows[i])}"

    def take(self, rows: NDArray[np.int64]) -> Texts:
        return Texts(self.values, rows if self.rows is None else self.rows[rows])


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The texts of a table and their labels."""
    file = find(cfg.path, data_dir, folder=False)
    table = read(file)
    column = text_column(table, cfg.columns)
    target = find_target(table, cfg.columns.model_copy(update={"text": column}), skip_bad=cfg.skip_bad)
    texts = table.values[column]
    kept = leave_out(
        np.array([not texts[i] for i in target.rows], bool),
        "have no text",
        lambda i: f"{table.where(int(target.rows[i]))} has an empty {column}",
        skip=cfg.skip_bad,
    )
    target = replace(target, rows=target.rows[kept], split=target.split[kept])
    guessed = "" if cfg.columns.text else " (as no --text names one; the most words)"
    notes = (f"{target.sentence}; texts are in the column {column}{guessed}, embedded by {cfg.model}.",)
    return finished(target.dataset(file.name.partition(".")[0], Texts(texts), notes), cfg, file.parent, data_dir)


def read_texts(file: Path, roles: Roles) -> Texts:
    """The texts of another table, or of a .txt file with one in each line."""
    path = find(str(file), None, folder=False)
    if path.suffix.lower() == ".txt":
        texts = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    else:
        table = read(path)
        texts = table.values[text_column(table, roles)]
    empty = next((i for i, text in enumerate(texts) if not text), None)
    if empty is not None or not texts:
        where = "has no rows" if empty is None else f"has no text in row {empty}"
        raise DataError(f"{path} {where}; give a text in each row.")
    return Texts(texts)


def text_column(table: Columns, roles: Roles) -> str:
    """The column of texts, as the user says, or the one with the most words."""
    if roles.text is not None:
        return named(Roles(text=roles.text), table)["text"]
    words = {name: sum(len(value.split()) for value in values) for name, values in table.values.items()}
    if not words or max(words.values()) <= len(table):
        raise DataError(
            f"{table.file} has no column that looks like texts (it has: {', '.join(table.names)}); name it with --text."
        )
    return max(words, key=lambda name: words[name])
