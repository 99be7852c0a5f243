"""A table whose columns are learnt from: numbers and categories, in CSV, TSV or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rte.data._columns import read
from rte.data._own import Own, finished
from rte.data._places import find
from rte.data._target import Target, find_target
from rte.data.rows import Column, TableRows, learn_columns, to_values
from rte.data.types import Dataset
from rte.errors import DataError, did_you_mean
from rte.settings import setting

KIND = "table"
SUMMARY = "your own table of numbers and categories: .csv, .tsv or .parquet, with the target in one column"


class Config(Own):
    """Which table, and what its columns are."""

    path: str = setting(..., "the table, from here or from the data folder")
    numbers: tuple[str, ...] = setting((), "columns that are numbers; the kind of others is guessed", strict=False)
    categories: tuple[str, ...] = setting(
        (), "columns that are categories, though they may be written as numbers", strict=False
    )
    ignore: tuple[str, ...] = setting((), "columns that are not learnt from", strict=False)


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The rows of a table. Kinds of columns, and categories, are those of the training rows."""
    file = find(cfg.path, data_dir, folder=False)
    table = read(file)
    target = find_target(table, cfg.columns, skip_bad=cfg.skip_bad)
    names = _chosen(cfg, target)
    train = target.part("train")
    cells = {name: table.values[name] for name in names}
    some = {name: [values[i] for i in train] for name, values in cells.items()}
    columns, left = learn_columns(some, numbers=cfg.numbers, categories=cfg.categories)
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left.items()) or "there are no others"
        raise DataError(f"{file} has no column to learn {target.roles['label']} from ({reasons}).")
    rows = TableRows(columns, to_values(columns, cells, str(file), table.where))
    notes = (f"{target.sentence}; {described(columns, left)}.",)
    return finished(target.dataset(_stem(file), rows, notes), cfg, file.parent, data_dir)


def read_rows(file: Path, columns: Sequence[Column]) -> TableRows:
    """The rows of another table, seen by the columns that a model was trained on."""
    table = read(find(str(file), None, folder=False))
    if not len(table):
        raise DataError(f"{file} has no rows; give at least one.")
    return TableRows(tuple(columns), to_values(columns, table.values, str(file), table.where))


def described(columns: Sequence[Column], left: dict[str, str]) -> str:
    """The kinds of a table's columns in words."""
    said = []
    for kind, several in (("number", "numbers"), ("category", "categories")):
        names = [column.name for column in columns if column.kind == kind]
        said += [f"{len(names)} {several if len(names) > 1 else kind} ({_listed(names)})"] if names else []
    said += [f"{name} is left out, {reason}" for name, reason in left.items()]
    return "; ".join(said)


def _listed(names: list[str], most: int = 6) -> str:
    return ", ".join([*names[: most - 1], "…", names[-1]] if len(names) > most else names)


def _chosen(cfg: Config, target: Target) -> list[str]:
    """The columns that may be learnt from; those that the settings name must be among the table's."""
    for setting_name in ("numbers", "categories", "ignore"):
        for name in getattr(cfg, setting_name):
            if name not in target.columns.values:
                near = did_you_mean(name, target.columns.values)
                raise DataError(f"data.{setting_name}: {target.columns.file} has no column '{name}'; {near}")
            if name == target.roles["label"]:
                raise DataError(f"data.{setting_name} names {name}, which is the target; name others.")
    twice = set(cfg.numbers) & set(cfg.categories)
    if twice:
        raise DataError(f"{min(twice)} is named as a number and as a category; choose one.")
    return [name for name in target.rest if name not in cfg.ignore]


def _stem(file: Path) -> str:
    return file.name.partition(".")[0] or file.name
