"""The vocabulary of strong views: which operations exist, and how a strength becomes an operation's argument.

An augmentation (AugMix, a RandAugment) is a table of `Operation` rows; tables live in `augmix.py` and `randaugment.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]
Colour = tuple[int, int, int]

BLACK: Colour = (0, 0, 0)


class Kind(IntEnum):
    """What the kernels can do; the number is what a recorded view holds."""

    IDENTITY = 0
    AUTOCONTRAST = 1
    EQUALIZE = 2
    INVERT = 3
    POSTERIZE = 4  # argument: bits kept, 0..8
    SOLARIZE = 5  # values >= argument are inverted
    SOLARIZE_ADD = 6  # argument added to values below 128
    ADD_SOLARIZE = 7  # argument added to all values, then those >= 128 inverted
    BRIGHTNESS = 8  # factor, 1 = unchanged (also the next three)
    CONTRAST = 9
    COLOR = 10
    SHARPNESS = 11
    ROTATE = 12  # degrees, counter-clockwise
    SHEAR_X = 13  # pixels sampled further right per pixel down
    SHEAR_Y = 14
    TRANSLATE_X = 15  # whole pixels (else rounded) sampled further right: the content moves left
    TRANSLATE_Y = 16
    CUTOUT = 17  # side in pixels; its centre is the view's `spot`


@dataclass(frozen=True)
class Operation:
    """One row of a table: argument = around +- rule(level, side); `integer` cuts what the rule says to a whole number.

    `rule` maps strengths and the side in pixels (the width for x, else the height) to arguments; some operations have
    none. `fill` colours cutouts and what comes from outside the image; `nearest` switches interpolation off.
    """

    kind: Kind
    rule: Callable[[Floats, int], Floats | float] | None = None
    signed: bool = False
    integer: bool = False
    around: float = 0.0
    fill: Colour = BLACK
    nearest: bool = False

    def argument(self, level: Floats, sign: Floats, side: int) -> Floats:
        """The arguments for strengths `level` and signs of -1 or 1, same shape."""
        value = np.asarray(0.0 if self.rule is None else self.rule(level, side), np.float64)
        if self.integer:
            value = np.trunc(value)
        return self.around + (value * sign if self.signed else value)


def arguments(
    table: Sequence[Operation], row: NDArray[np.int64], level: Floats, sign: Floats, size: tuple[int, int]
) -> Floats:
    """The argument of each drawn operation: `row`, `level`, `sign` and the result have one shape; size is (H, W)."""
    result = np.zeros(row.size)
    rows, levels, signs = row.astype(np.int8).ravel(), level.ravel(), sign.ravel()
    for number, operation in enumerate(table):
        if operation.rule is None:
            continue
        at = np.flatnonzero(rows == number)
        side = size[1] if operation.kind in (Kind.SHEAR_X, Kind.TRANSLATE_X) else size[0]
        result[at] = operation.argument(levels[at], signs[at], side)
    return result.reshape(row.shape)


def by_view(
    table: Sequence[Operation], row: NDArray[np.int64], value: Floats, spot: Floats | None = None
) -> tuple[Codes, Floats]:
    """`op` (B, V, width, depth) and `arg` (B, V, width, depth, 3) of `ViewParams`.

    row and value are (width, depth, B, V), spot (2, width, depth, B, V); a row of -1 is no operation.
    """
    kinds = np.array([*(operation.kind for operation in table), Kind.IDENTITY], np.int8)
    op = np.moveaxis(kinds[row], (0, 1), (2, 3))
    arg = np.zeros((*op.shape, 3))
    arg[..., 0] = np.moveaxis(value, (0, 1), (2, 3))
    if spot is not None:
        arg[..., 1:] = np.moveaxis(spot, (0, 1, 2), (4, 2, 3))
    return np.ascontiguousarray(op), arg


def outside(table: Sequence[Operation], channels: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Per kind, what the kernels need to know of its row: fill colours (kinds, channels) and nearest (kinds,)."""
    fill = np.zeros((len(Kind), channels), np.uint8)
    nearest = np.zeros(len(Kind), np.bool_)
    for operation in table:
        fill[operation.kind] = operation.fill if channels == 3 else luma(operation.fill)
        nearest[operation.kind] = operation.nearest
    return fill, nearest


def luma(colour: Colour) -> int:
    """The grey of a colour, as Pillow converts it: (19595 r + 38470 g + 7471 b) / 2^16, rounded."""
    red, green, blue = colour
    return (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
