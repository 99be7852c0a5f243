"""A label file: a table of ids and labels that says what the examples of other data are labelled as.

Ids are those of `rte.data.ids`: paths below the folder of the data, or numbers. Where no path matches, the name of the
file alone will do, with or without its ending, if only one file has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.data._columns import read
from rte.data._roles import Roles, roles_of, split_of
from rte.data._useless import LeftOut, leave_out
from rte.data.ids import RISKY, uncell
from rte.errors import DataError


@dataclass(frozen=True)
class Given:
    """Which examples a label file speaks of, and what it says of each; split and group are None where it has none."""

    rows: NDArray[np.int64]
    label: list[str]
    split: list[str] | None
    group: list[str] | None


def match(file: Path, names: Sequence[str], roles: Roles, *, skip: bool) -> Given:
    """What a label file says of the examples called `names`; those that are not in it are left out and counted."""
    columns = read(file)
    role = roles_of(roles, columns, "id")
    text = {name: columns.values[column] for name, column in role.items() if column in columns.values}
    ids, labels = text["id"], [_plain(label) for label in text["label"]]
    place = _places(names)
    found = np.array([_find(one, place) for one in ids], np.int64)

    def left(bad: NDArray[np.bool_], what: str, wrong: str) -> NDArray[np.int64]:
        return leave_out(
            bad, what, lambda i: f"{columns.where(int(kept[i]))} {wrong.format(id=ids[kept[i]])}", skip=skip
        )

    kept = np.arange(len(ids))
    kept = kept[left(found < 0, "name no example", "names '{id}', which is not there")]
    kept = kept[left(np.array([not labels[k] for k in kept], bool), "have no label", "has an empty label")]
    _refuse_doubles(kept, found, labels, columns.where)
    order = kept[np.unique(found[kept], return_index=True)[1]]
    if len(order) < len(names):
        missing = np.ones(len(names), bool)
        missing[found[order]] = False
        warnings.warn(
            f"{missing.sum():,} of {len(names):,} examples are not in {file} and are left out; the first is "
            f"{names[int(np.argmax(missing))]}.",
            LeftOut,
            stacklevel=4,
        )
    if not len(order):
        raise DataError(f"{file} names none of the {len(names):,} examples, such as {names[0]}; correct its ids.")
    split = text.get("split")
    group = text.get("group")
    return Given(
        found[order],
        [labels[k] for k in order],
        None if split is None else [split_of(split[k], partial(columns.where, int(k))) for k in order],
        None if group is None else [group[k] for k in order],
    )


def _plain(text: str) -> str:
    """A cell without the apostrophe that keeps spreadsheets from taking it for a formula."""
    return uncell(text) if text.startswith("'") and text[1:].lstrip(" ").startswith(RISKY) else text


def _places(names: Sequence[str]) -> dict[str, int]:
    """The example that each id stands for: a whole name, or a shorter one that only one example has."""
    files = [name.rpartition("/")[2] for name in names]
    stems = [name.rpartition(".")[0] for name in files]
    place: dict[str, int] = {}
    for shorter in (stems, files):
        short: dict[str, int] = {}
        for i, one in enumerate(shorter):
            short[one] = -1 if one in short else i
        place |= short
    return place | {name: i for i, name in enumerate(names)}


def _find(one: str, place: dict[str, int]) -> int:
    for text in (one, _plain(one), one.replace("\\", "/").removeprefix("./")):
        if text and text in place:
            return place[text]
    return -1


def _refuse_doubles(
    kept: NDArray[np.int64], found: NDArray[np.int64], labels: list[str], where: Callable[[int], str]
) -> None:
    first: dict[int, int] = {}
    for k in map(int, kept):
        before = first.setdefault(int(found[k]), k)
        if labels[before] != labels[k]:
            raise DataError(
                f"{where(before)} and {where(k)} give one example two labels ('{labels[before]}' and '{labels[k]}'); "
                "keep one of the lines."
            )
