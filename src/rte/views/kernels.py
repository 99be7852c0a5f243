"""The compiled kernels behind plain functions. Numba is loaded by the first call, not by importing this.

Inputs are made contiguous and writable first, although kernels only read them: another layout would be another type to
Numba, and cost a compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rte.views.operations import Operation, outside

Scalar = TypeVar("Scalar", bound=np.generic)
Bytes = NDArray[np.uint8]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]


class Scaling(NamedTuple):
    """What turns bytes into network input, value * scale + bias, for one row of an image: both (W * C,)."""

    scale: Singles
    bias: Singles


def scaling(mean: Sequence[float], std: Sequence[float], width: int) -> Scaling:
    """(value / 255 - mean) / std per channel."""
    spread = np.asarray(std, np.float64)
    scale, bias = 1.0 / (255.0 * spread), -np.asarray(mean, np.float64) / spread
    return Scaling(np.tile(scale, width).astype(np.float32), np.tile(bias, width).astype(np.float32))


def raw(width: int, channels: int) -> Scaling:
    """Values stay in 0..255."""
    return Scaling(np.ones(width * channels, np.float32), np.zeros(width * channels, np.float32))


def crop_and_flip(images: Bytes, shift: Integers, flip: NDArray[np.bool_], rows: Integers, columns: Integers) -> Bytes:
    """(V, B, H, W, C): V padded crops of each of images (B, H, W, C); see the kernel for the rest."""
    from rte.views import kernels_batch

    out = np.empty((shift.shape[1], *images.shape), np.uint8)
    kernels_batch.crop_and_flip(_ready(images), _ready(shift), _ready(flip), _ready(rows), _ready(columns), out)
    return out


def resize(
    image: Bytes,
    box: tuple[int, int, int, int],
    full: tuple[int, int],
    offset: tuple[int, int],
    flip: bool,
    out: Bytes,
) -> None:
    """out (H, W, C) = the part from `offset` on of image[box] resized to `full`, flipped if asked."""
    from rte.views import kernels_resize

    kernels_resize.resize(_ready(image), np.array(box), np.array(full), np.array(offset), flip, out)


def normalise(images: Bytes, finish: Scaling, out: Singles) -> None:
    """out = images as network input; both (..., H, W, C) and contiguous."""
    from rte.views import kernels_batch

    width = len(finish.scale)
    kernels_batch.normalise(_ready(images).reshape(-1, width), finish.scale, finish.bias, out.reshape(-1, width))


def strong(
    weak: Bytes,
    op: NDArray[np.int8],
    arg: NDArray[np.float64],
    mixing: Singles,
    table: Sequence[Operation],
    finish: Scaling,
    out: Singles,
) -> None:
    """out (V, B, H, W, C) = the strong views of weak (B, H, W, C) that op, arg and mixing of `ViewParams` describe."""
    from rte.views import kernels_batch, kernels_chain

    border = kernels_chain.Outside(*outside(table, weak.shape[3]))
    drawn = _ready(op), _ready(arg), _ready(mixing)
    kernels_batch.strong_views(_ready(weak), *drawn, border, finish.scale, finish.bias, out)


def _ready(array: NDArray[Scalar]) -> NDArray[Scalar]:
    return np.require(array, requirements=("C", "W"))
