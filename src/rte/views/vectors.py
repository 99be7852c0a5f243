"""Views of vectors: embeddings, or the columns of a table.

    z      (x - mean) / std, every coordinate alike
    weak   z itself
    strong z + jitter * nearest * r * d     d: direction from one training example to another, of length 1; r ~ N(0, 1)
           each coordinate, with probability `dropout`, is then 0, the mean

Directions between examples vary as the data does, so that noise along them is noise in the whitened space, without
a D x D matrix. Its length is measured in distances between neighbours (`nearest`), which need no labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rte.data.types import Source, Vectors, as_vectors
from rte.errors import DataError
from rte.rng import generator
from rte.settings import Settings, setting
from rte.views.batch import ViewPlan
from rte.views.sampling import branch, pick, states, uniform

Singles = NDArray[np.float32]
BANK = 4096
"""Training examples that directions are taken from."""


class VectorViewConfig(Settings):
    """The [views] section of vectors: what a strong view is."""

    jitter: float = setting(
        1.0, "length of the noise of a strong view, in distances between nearest neighbours", ge=0.0, search=(0.0, 3.0)
    )
    dropout: float = setting(
        0.1, "share of the numbers of a strong view that are replaced by their mean", ge=0.0, lt=1.0, search=(0.0, 0.5)
    )


class VectorViewer:
    """Views (D,) of vectors; `bank` (M, D) are some standardised training examples, which only strong views need."""

    def __init__(
        self,
        cfg: VectorViewConfig,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        nearest: float,
        bank: Singles | None = None,
    ) -> None:
        self.cfg, self.nearest, self.bank = cfg, nearest, bank
        self.mean, self.std = (np.asarray(values, np.float32) for values in (mean, std))

    @property
    def shape(self) -> tuple[int]:
        """Of one view: (D,)."""
        return (len(self.mean),)

    @property
    def looks(self) -> int:
        """At an example, for a prediction."""
        return 1

    def fetch(self, source: Source, index: NDArray[np.int64]) -> Singles:
        """The vectors at `index`, (B, D)."""
        return as_vectors(source).fetch(index)

    def render(
        self,
        examples: Singles,
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
        each[: plan.weak] = z = self._standardised(examples)
        if plan.strong:
            drawn = states(np.asarray(index, np.int64), seed=seed, epoch=epoch, stream=stream, again=again)
            state = branch(branch(drawn, 2)[:, 1], plan.strong)  # (B, strong)
            for k in range(plan.strong):
                each[plan.weak + k] = self._strong(z, state[:, k])
        return views

    def _strong(self, z: Singles, state: NDArray[np.uint64]) -> Singles:
        if self.bank is None or len(self.bank) < 2:
            raise DataError("strong views of vectors need training examples; give the viewer a bank of at least two.")
        first, second, one, two = uniform(state, 4)
        a = pick(first, len(self.bank))
        b = (a + 1 + pick(second, len(self.bank) - 1)) % len(self.bank)  # another one
        direction = self.bank[a] - self.bank[b]
        length = np.sqrt(np.einsum("nd,nd->n", direction, direction))
        r = np.sqrt(-2 * np.log1p(-one)) * np.cos(2 * np.pi * two)  # Box and Muller
        scale = self.cfg.jitter * self.nearest * r / np.maximum(length, np.finfo(np.float32).tiny)
        view: Singles = z + direction * scale[:, None].astype(np.float32)
        if self.cfg.dropout:
            drawn = uniform(branch(state, 1)[:, 0], z.shape[1]).T
            view[drawn < self.cfg.dropout] = 0.0
        return view

    def plain(self, examples: Singles, out: Singles | None = None) -> Singles:
        """The examples as they are predicted, (B, D)."""
        z = self._standardised(examples)
        if out is None:
            return z
        out[...] = z
        return out

    def tensor(self, views: Tensor) -> Tensor:
        """As it is."""
        return views

    def mirrored(self, x: Tensor) -> Tensor | None:
        """There is no second look at a vector."""
        return None

    def _standardised(self, examples: Singles) -> Singles:
        z: Singles = (np.asarray(examples, np.float32) - self.mean) / self.std
        return z


def bank_of(source: Vectors, mean: Sequence[float], std: Sequence[float], *, seed: int) -> Singles:
    """Some standardised training examples, (M, D), drawn by the seed."""
    n = len(source)
    rows = np.sort(generator(seed, "bank").permutation(n)[: min(n, BANK)])
    centre, scale = (np.asarray(values, np.float32) for values in (mean, std))
    z: Singles = (source.fetch(rows) - centre) / scale
    return z
