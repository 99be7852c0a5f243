"""RandAugment in the forms that papers report: same name, other ranges, so their results are not comparable.

One chain of operations, drawn with replacement, all at one strength; the result is not mixed with the weak view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.views.operations import BLACK, Colour, Floats, Kind, Operation, arguments, by_view
from rte.views.sampling import States, branch, pick, uniform

GREY: Colour = (128, 128, 128)
TINT: Colour = (125, 123, 114)  # the mean colour of CIFAR-10


@dataclass(frozen=True)
class Variant:
    """A table with its usual number of operations and strength.

    `chance`: how likely each drawn operation is applied. `random`: the strength is a whole number from 1 to below
    `magnitude` instead of it. `last`: applied after the drawn ones, always.
    """

    table: tuple[Operation, ...]
    num_ops: int
    magnitude: float
    chance: float = 1.0
    random: bool = False
    last: Operation | None = None

    @property
    def rows(self) -> tuple[Operation, ...]:
        return self.table if self.last is None else (*self.table, self.last)


def _geometry(fill: Colour, full: float) -> tuple[Operation, ...]:
    """Rotation by up to 30 degrees and shears by up to 0.3, reached at strength `full`."""
    return (
        Operation(Kind.ROTATE, lambda m, side: m / full * 30, signed=True, fill=fill, nearest=True),
        Operation(Kind.SHEAR_X, lambda m, side: m / full * 0.3, signed=True, fill=fill, nearest=True),
        Operation(Kind.SHEAR_Y, lambda m, side: m / full * 0.3, signed=True, fill=fill, nearest=True),
    )


def _enhance(full: float) -> tuple[Operation, ...]:
    """Four factors from 0.1 to 1.9, reached at strength `full`: weakening below the middle, strengthening above it."""
    return tuple(Operation(kind, lambda m, side: m / full * 1.8, around=0.1) for kind in ENHANCE)


def _translate(rule: Callable[[Floats, int], Floats], fill: Colour, *, integer: bool = False) -> tuple[Operation, ...]:
    """The same translation in x and in y."""
    kinds = (Kind.TRANSLATE_X, Kind.TRANSLATE_Y)
    return tuple(Operation(kind, rule, signed=True, integer=integer, fill=fill, nearest=True) for kind in kinds)


ENHANCE = (Kind.COLOR, Kind.CONTRAST, Kind.BRIGHTNESS, Kind.SHARPNESS)
PLAIN = (Operation(Kind.AUTOCONTRAST), Operation(Kind.EQUALIZE))

IMAGENET = 224
"""The side of the images that the lengths of the TPU code, in pixels, were made for."""


def _tpu(translate: Callable[[Floats, int], Floats], cut: Callable[[Floats, int], Floats]) -> Variant:
    """The TPU code's table, with lengths in pixels by these rules of strength and side."""
    return Variant(
        table=(
            *PLAIN,
            Operation(Kind.INVERT),
            Operation(Kind.POSTERIZE, lambda m, side: m / 10 * 4, integer=True),
            Operation(Kind.SOLARIZE, lambda m, side: m / 10 * 256, integer=True),
            Operation(Kind.SOLARIZE_ADD, lambda m, side: m / 10 * 110, integer=True),
            *_enhance(10),
            *_geometry(GREY, 10),
            *_translate(translate, GREY),
            Operation(Kind.CUTOUT, cut, integer=True, fill=GREY),
        ),
        num_ops=2,
        magnitude=10.0,
    )


TPU = _tpu(lambda m, side: m / 10 * 100, lambda m, side: 2 * np.trunc(m / 10 * 40))
# The same shares of the image: at 32 pixels the lengths above push it out of sight, or cover it, in a third of views.
SCALED = _tpu(
    lambda m, side: m / 10 * 100 * side / IMAGENET, lambda m, side: 2 * np.trunc(m / 10 * 40 * side / IMAGENET)
)

ILDOONET = Variant(
    table=(
        *PLAIN,
        Operation(Kind.INVERT),
        Operation(Kind.POSTERIZE, lambda m, side: np.maximum(m / 30 * 4, 1), integer=True),
        Operation(Kind.SOLARIZE, lambda m, side: m / 30 * 256),
        Operation(Kind.ADD_SOLARIZE, lambda m, side: m / 30 * 110, integer=True),
        *_enhance(30),
        *_geometry(BLACK, 30),
        *_translate(lambda m, side: m / 30 * 100, BLACK),
        Operation(Kind.CUTOUT, lambda m, side: m / 30 * 40, integer=True, fill=TINT),
    ),
    num_ops=1,
    magnitude=3.0,
)

FIXMATCH = Variant(
    table=(
        Operation(Kind.IDENTITY),
        *PLAIN,
        Operation(Kind.POSTERIZE, lambda m, side: 4 - np.trunc(m * 4 / 10), integer=True),
        Operation(Kind.SOLARIZE, lambda m, side: 256 - np.trunc(m * 256 / 10), integer=True),
        *_enhance(10),
        *_geometry(GREY, 10),  # whole levels make whole degrees
        *_translate(lambda m, side: m * 10 / 10, GREY, integer=True),
    ),
    num_ops=2,
    magnitude=10.0,
    chance=0.5,
    random=True,
    last=Operation(Kind.CUTOUT, lambda m, side: side / 2, integer=True, fill=GREY),
)

TORCHVISION = Variant(
    table=(
        Operation(Kind.IDENTITY),
        *PLAIN,
        Operation(Kind.POSTERIZE, lambda m, side: 8 - np.rint(m / 30 * 4), integer=True),
        Operation(Kind.SOLARIZE, lambda m, side: 255 - m / 30 * 255),
        *(Operation(kind, lambda m, side: m / 30 * 0.9, signed=True, around=1.0) for kind in ENHANCE),
        *_geometry(BLACK, 30),
        *_translate(lambda m, side: m / 30 * (150 / 331 * side), BLACK, integer=True),
    ),
    num_ops=2,
    magnitude=9.0,
)

VARIANTS = {
    "randaugment": SCALED,
    "randaugment-tpu": TPU,
    "randaugment-ildoonet": ILDOONET,
    "randaugment-fixmatch": FIXMATCH,
    "randaugment-torchvision": TORCHVISION,
}


def draw(
    state: States, views: int, variant: Variant, num_ops: int, magnitude: float, size: tuple[int, int]
) -> tuple[NDArray[np.int8], Floats, NDArray[np.float32]]:
    """`op`, `arg` and `mixing` of `ViewParams` for states (B,)."""
    depth = num_ops + (variant.last is not None)
    u = uniform(branch(state, views), 6 * depth).reshape(6, 1, depth, len(state), views)
    row = pick(u[0], len(variant.table))
    row[u[1] >= variant.chance] = -1
    if variant.last is not None:
        row[:, -1] = len(variant.table)
    level = np.full(row.shape, float(magnitude))
    if variant.random:
        level[:] = 1 + pick(u[2], max(int(magnitude) - 1, 1))
    value = arguments(variant.rows, row, level, np.where(u[3] < 0.5, -1.0, 1.0), size)
    op, arg = by_view(variant.rows, row, value, u[4:])
    return op, arg, np.broadcast_to(np.array([0.0, 1.0], np.float32), (len(state), views, 2))
