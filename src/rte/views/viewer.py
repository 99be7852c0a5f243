"""What makes views of examples, whatever kind these are: images have `ViewEngine`, vectors `VectorViewer`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rte.data.types import Source
from rte.views.batch import ViewPlan

Singles = NDArray[np.float32]


class Viewer(Protocol):
    """Views are float32 arrays of one `shape`. Each is a function of (seed, epoch, example, view), never of a batch.

    Several threads use one viewer at a time.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one view, as it lies in memory."""

    def fetch(self, source: Source, index: NDArray[np.int64]) -> Any:
        """The examples at `index` (B,), in the form that `render` and `plain` take."""

    def render(
        self,
        examples: Any,
        index: NDArray[np.int64],
        *,
        seed: int,
        epoch: int,
        plan: ViewPlan,
        stream: int = 0,
        again: NDArray[np.int64] | None = None,
        out: Singles | None = None,
    ) -> Singles:
        """The views that the plan asks for, ((weak + strong) * B, *shape): weak ones first, then strong, view by view.

        An example that has come `again` (B,) times before gets other views each time.
        """

    def plain(self, examples: Any, out: Singles | None = None) -> Singles:
        """The examples as they are predicted, not augmented, (B, *shape)."""

    @property
    def looks(self) -> int:
        """At an example, for a prediction: 2 where `mirrored` gives a second one."""

    def tensor(self, views: Tensor) -> Tensor:
        """Views (B, *shape) as a network takes them, without a copy."""

    def mirrored(self, x: Tensor) -> Tensor | None:
        """What a network takes, as a second look at the same examples; None: predictions are made from one look."""
