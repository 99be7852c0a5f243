"""Images read when they are needed: photographs of full size would fill the memory a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Images, Pixels


class OneByOne(Sequence[Pixels]):
    """Some of `images`, each read when it is asked for and not kept."""

    def __init__(self, images: Images, index: NDArray[np.int64]) -> None:
        self.images, self.rows = images, index

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, k: int) -> Pixels: ...
    @overload
    def __getitem__(self, k: slice) -> OneByOne: ...
    def __getitem__(self, k: int | slice) -> Pixels | OneByOne:
        if isinstance(k, slice):
            return OneByOne(self.images, self.rows[k])
        return self.images.fetch(self.rows[[k]])[0]  # an IndexError ends an iteration
