"""Views of rows of a table: every column becomes some numbers, and a strong view takes some columns of other rows.

    number    x, and for each interval e_t..e_(t+1) between its quantiles clip((x - e_t) / (e_(t+1) - e_t), 0, 1)
    category  1 for the value it has, 0 for the others (so the first layer of a network holds an embedding of each)
    missing   1 where the value is missing, for columns that lack it in some training rows
    weak      these numbers, each with mean 0 and, unless it is rare, deviation 1 over the training rows
    strong    the same of a row whose columns are, with probability `corrupt`, those of training rows drawn at random

The pieces between quantiles are the piecewise linear encoding of Gorishniy et al. 2022; other rows' values in some
columns are the corruption of SCARF (Bahri et al. 2022). What a value that was never seen would say is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rte.data.rows import Column, TableRows, as_rows
from rte.data.types import Source
from rte.errors import DataError
from rte.rng import generator
from rte.settings import Settings, setting
from rte.views.batch import ViewPlan
from rte.views.sampling import branch, pick, states, uniform

Singles = NDArray[np.float32]
Values = NDArray[np.float64]
BANK = 16_384
"""Training rows that other values are taken from."""


LOOKED_AT = 100_000
"""Training rows that statistics are taken of."""
PIECES = 32
"""Between quantiles of a number that takes more values than that. On adult, held out, 1 point more than with 16 pieces.
For the whole numbers 0 to 15 of letter, pieces would be one for each value, and more wrong labels are memorised."""
RARE = 0.2
"""Deviation that values of a category and pieces are divided by at least: those that are rare stay small."""


class TableViewConfig(Settings):
    """The [views] section of tables: what a strong view is."""

    corrupt: float = setting(
        0.3,
        "share of a row's columns that show another row's values in a strong view",
        ge=0.0,
        lt=1.0,
        search=(0.0, 0.8),
    )


class Encoding:
    """Rows (B, C) as numbers (B, D), before they are standardised: NaN where nothing is known."""

    def __init__(self, columns: Sequence[Column]) -> None:
        plain = [(c, 0.0, 1.0) for c, column in enumerate(columns) if column.kind == "number"]
        pieces = [
            (c, low, high - low)
            for c, column in enumerate(columns)
            for low, high in zip(column.edges, column.edges[1:], strict=False)
        ]
        values = [(c, k) for c, column in enumerate(columns) for k in range(len(column.categories))]
        lacking = [c for c, column in enumerate(columns) if column.kind == "number" and column.missing]
        self.plain = np.array([c for c, _, _ in plain], np.int64)
        self.piece = np.array([c for c, _, _ in pieces], np.int64)
        self.low = np.array([low for _, low, _ in pieces])
        self.width = np.array([width for _, _, width in pieces])
        self.column, self.code = np.array(values, np.int64).reshape(-1, 2).T
        self.lacking = np.array(lacking, np.int64)

    def __len__(self) -> int:
        return len(self.plain) + len(self.piece) + len(self.code) + len(self.lacking)

    def __call__(self, rows: Values) -> Values:
        pieces = np.clip((rows[:, self.piece] - self.low) / self.width, 0.0, 1.0)
        given = rows[:, self.column]
        values = np.where(np.isnan(given), np.nan, given == self.code)
        return np.concatenate([rows[:, self.plain], pieces, values, np.isnan(rows[:, self.lacking])], 1)


def learnt(source: TableRows) -> tuple[tuple[Column, ...], tuple[float, ...], tuple[float, ...]]:
    """The columns with the quantiles of numbers, and mean and deviation of what they become, over the training rows."""
    n = len(source)
    some = source.fetch(np.linspace(0, n - 1, min(n, LOOKED_AT)).round().astype(np.int64))
    columns = tuple(
        replace(column, edges=edges_of(some[:, c])) if column.kind == "number" else column
        for c, column in enumerate(source.columns)
    )
    seen = Encoding(columns)(some)
    known = ~np.isnan(seen)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, seen, 0.0).sum(0) / count
    std = np.sqrt((np.where(known, seen - mean, 0.0) ** 2).sum(0) / count)
    least = np.zeros(len(std))
    least[len(Encoding(columns).plain) :] = RARE
    std = np.maximum(std, least)
    return columns, tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


def edges_of(values: NDArray[np.float64]) -> tuple[float, ...]:
    """The quantiles between which a number is seen piece by piece.

    Where one value is so frequent that several quantiles are the same, the others are taken of the rest.
    """
    rest = values[~np.isnan(values)]
    found = np.zeros(0)
    if len(np.unique(rest)) <= PIECES:
        return ()
    while len(rest) and len(found) <= PIECES:
        new = np.unique(np.quantile(rest, np.linspace(0.0, 1.0, PIECES + 2 - len(found)), method="nearest"))
        found, rest = np.union1d(found, new), rest[~np.isin(rest, new)]
    return tuple(found.tolist())


class TableViewer:
    """Views (D,) of rows; `bank` (M, C) are some training rows, which only strong views need."""

    def __init__(
        self,
        cfg: TableViewConfig,
        columns: Sequence[Column],
        *,
        mean: Sequence[float],
        std: Sequence[float],
        bank: Values | None = None,
    ) -> None:
        self.cfg, self.bank, self.encoding = cfg, bank, Encoding(columns)
        self.mean, self.std = np.array(mean), np.array(std)

    @property
    def shape(self) -> tuple[int]:
        """Of one view: (D,)."""
        return (len(self.encoding),)

    @property
    def looks(self) -> int:
        """At an example, for a prediction."""
        return 1

    def fetch(self, source: Source, index: NDArray[np.int64]) -> Values:
        """The rows at `index`, (B, C)."""
        return as_rows(source).fetch(index)

    def render(
        self,
        examples: Values,
        index: NDArray[np.int64],
        *,
        seed: int,
        epoch: int,
        plan: ViewPlan,
        stream: int = 0,
        again: NDArray[np.int64] | None = None,
        out: Singles | None = None,
    ) -> Singles:
        """The views that the plan asks for, ((weak + strong) * B, D); several weak views are the same."""
        b = len(index)
        views = np.empty((plan.total * b, *self.shape), np.float32) if out is None else out
        each = views.reshape(plan.total, b, *self.shape)
        each[: plan.weak] = self._seen(examples)
        if plan.strong:
            drawn = states(np.asarray(index, np.int64), seed=seed, epoch=epoch, stream=stream, again=again)
            state = branch(branch(drawn, 2)[:, 1], plan.strong)  # (B, strong)
            for k in range(plan.strong):
                each[plan.weak + k] = self._seen(self._corrupted(examples, state[:, k]))
        return views

    def _corrupted(self, rows: Values, state: NDArray[np.uint64]) -> Values:
        """SCARF: each column, with probability `corrupt`, shows the value of a training row drawn for it alone."""
        if self.bank is None:
            raise DataError("strong views of rows need training rows; give the viewer a bank.")
        c = rows.shape[1]
        drawn = uniform(branch(state, 1)[:, 0], 2 * c)
        chosen = self.cfg.corrupt > drawn[:c].T
        other = self.bank[pick(drawn[c:].T, len(self.bank)), np.arange(c)]
        return np.where(chosen, other, rows)

    def plain(self, examples: Values, out: Singles | None = None) -> Singles:
        """The examples as they are predicted, (B, D)."""
        z = self._seen(examples)
        if out is None:
            return z
        out[...] = z
        return out

    def tensor(self, views: Tensor) -> Tensor:
        """As it is."""
        return views

    def mirrored(self, x: Tensor) -> Tensor | None:
        """There is no second look at a row."""
        return None

    def _seen(self, rows: Values) -> Singles:
        z: Singles = np.nan_to_num((self.encoding(rows) - self.mean) / self.std).astype(np.float32)
        return z


def rows_bank(source: TableRows, *, seed: int) -> Values:
    """Some training rows, (M, C), drawn by the seed."""
    n = len(source)
    return source.fetch(np.sort(generator(seed, "bank").permutation(n)[: min(n, BANK)]))
