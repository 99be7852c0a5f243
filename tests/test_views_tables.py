"""Rows of a table as numbers, against a slow reference; strong views take columns of other rows."""

from __future__ import annotations

import numpy as np
import pytest

from rte.data.rows import Column, TableRows
from rte.errors import DataError
from rte.views.batch import ViewPlan
from rte.views.tables import RARE, Encoding, TableViewConfig, TableViewer, edges_of, learnt, rows_bank

RNG = np.random.default_rng(0)
COLUMNS = (
    Column("a", "number", missing=True),
    Column("b", "category", ("", "x", "y")),
    Column("c", "number"),
)
VALUES = np.stack([RNG.normal(size=200), RNG.integers(0, 3, 200), RNG.integers(0, 4, 200)], 1).astype(np.float64)
VALUES[::9, 0] = np.nan
VALUES[::11, 1] = np.nan  # a category that the training rows do not have
SOURCE = TableRows(COLUMNS, VALUES)


def viewer(corrupt: float = 0.5, bank: bool = True) -> TableViewer:
    columns, mean, std = learnt(SOURCE)
    return TableViewer(
        TableViewConfig(corrupt=corrupt), columns, mean=mean, std=std, bank=rows_bank(SOURCE, seed=0) if bank else None
    )


def slowly(columns: tuple[Column, ...], row: np.ndarray) -> list[float]:
    """The numbers of one row, one at a time."""
    out = [row[c] for c, column in enumerate(columns) if column.kind == "number"]
    for c, column in enumerate(columns):
        for low, high in zip(column.edges, column.edges[1:], strict=False):
            out.append(np.nan if np.isnan(row[c]) else min(max((row[c] - low) / (high - low), 0.0), 1.0))
    for c, column in enumerate(columns):
        out += [np.nan if np.isnan(row[c]) else float(row[c] == k) for k in range(len(column.categories))]
    out += [float(np.isnan(row[c])) for c, column in enumerate(columns) if column.kind == "number" and column.missing]
    return out


def test_the_encoding_is_that_of_the_reference() -> None:
    columns, mean, std = learnt(SOURCE)
    expected = np.array([slowly(columns, row) for row in VALUES])
    np.testing.assert_allclose(Encoding(columns)(VALUES), expected, rtol=1e-12)
    assert len(Encoding(columns)) == expected.shape[1] == len(mean)
    np.testing.assert_allclose(mean, np.nanmean(expected, 0), rtol=1e-9)
    least = np.array([0.0, 0.0] + [RARE] * (len(mean) - 2))
    np.testing.assert_allclose(std, np.maximum(np.nanstd(expected, 0), least), rtol=1e-9)
    plain = viewer().plain(VALUES)
    np.testing.assert_allclose(plain, np.nan_to_num((expected - mean) / std), rtol=1e-5, atol=1e-6)


def test_quantiles_leave_room_beside_a_frequent_value() -> None:
    plain = edges_of(np.arange(1000.0))
    assert len(plain) > 30
    assert (plain[0], plain[-1]) == (0.0, 999.0)
    mostly = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    assert len(edges_of(mostly)) > 20
    assert edges_of(np.array([0.0, 1.0, 1.0, np.nan])) == ()
    assert edges_of(np.tile(np.arange(16.0), 9)) == (), "few values are seen as they are"


def test_views_depend_on_the_row_and_not_on_its_company() -> None:
    index, plan = np.array([5, 17, 60]), ViewPlan(weak=2, strong=2)
    views = viewer().render(SOURCE.fetch(index), index, seed=1, epoch=3, plan=plan).reshape(4, 3, -1)
    alone = viewer().render(SOURCE.fetch(index[1:2]), index[1:2], seed=1, epoch=3, plan=plan).reshape(4, 1, -1)
    np.testing.assert_array_equal(views[:, 1], alone[:, 0])
    np.testing.assert_array_equal(views[0], views[1])
    assert (views[2] != views[3]).any()
    other = viewer().render(SOURCE.fetch(index), index, seed=1, epoch=4, plan=plan).reshape(4, 3, -1)
    assert (views[2:] != other[2:]).any()


def test_a_strong_view_shows_other_rows_in_a_share_of_the_columns() -> None:
    look, index = viewer(0.3), np.arange(200)
    state = np.arange(200, dtype=np.uint64) * np.uint64(977)
    seen = look._corrupted(VALUES, state)
    known = ~np.isnan(VALUES[:, 0])
    changed = seen[known, 0] != VALUES[known, 0]
    assert changed.mean() == pytest.approx(0.3, abs=0.1)
    there = VALUES[:, 0]
    assert all(np.isnan(value) or value in there for value in seen[:, 0]), "values of training rows"
    plain = viewer(0.0).render(SOURCE.fetch(index), index, seed=0, epoch=0, plan=ViewPlan(strong=1)).reshape(2, 200, -1)
    np.testing.assert_array_equal(plain[0], plain[1])
    with pytest.raises(DataError, match="strong views of rows need training rows"):
        viewer(bank=False).render(VALUES[:2], np.arange(2), seed=0, epoch=0, plan=ViewPlan(strong=1))
