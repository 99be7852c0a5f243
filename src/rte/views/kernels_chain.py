"""One chain of operations on one image, with as few passes over its pixels as possible. Images are (H, W, C) uint8."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner
from rte.views import kernels_lookup as lookup
from rte.views import kernels_paint as paint
from rte.views import kernels_warp as warp
from rte.views.operations import Kind

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int32]
Codes = NDArray[np.int8]
Floats = NDArray[np.float64]

# fmt: off
(
    IDENTITY, AUTOCONTRAST, EQUALIZE, INVERT, POSTERIZE, SOLARIZE, SOLARIZE_ADD, ADD_SOLARIZE, BRIGHTNESS, CONTRAST,
    COLOR, SHARPNESS, ROTATE, SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, CUTOUT,
) = map(int, Kind)
# fmt: on

NONE, SIMPLE, TABLE = 0, 1, 2  # what is still to be done to a chain's pixels: nothing, one cheap operation, a look-up
WEAK = -1  # the slot of an image that no operation has touched
END = 100  # stands after a chain's last operation


class Outside(NamedTuple):
    """What each kind of operation does where the image ends."""

    fill: Bytes  # (kinds, C)
    nearest: NDArray[np.bool_]  # (kinds,)


class Scratch(NamedTuple):
    """One thread's working memory."""

    slots: Bytes  # (width + 1, H, W, C): one image per chain and one to write to
    wide: NDArray[np.uint64]  # (H + 2, W + 2)
    weights: NDArray[np.uint16]  # (2, W * C)
    stairs: Bytes  # (H + 1, W * C)
    table: Bytes  # (C, 256): look-ups not yet carried out
    then: Bytes  # (C, 256): the next look-up
    hist: NDArray[np.int32]  # (C, 256) of a chain's image
    weak_hist: NDArray[np.int32]  # (C, 256) of the weak view; [0, 0] < 0: not counted yet
    looked: NDArray[np.int32]  # (C, 256): a histogram after a look-up


@inner
def scratch(width: int, h: int, w: int, channels: int) -> Scratch:
    """Memory for images of one size."""
    return Scratch(
        np.empty((width + 1, h, w, channels), np.uint8),
        np.empty((h + 2, w + 2), np.uint64),
        np.empty((2, w * channels), np.uint16),
        np.empty((h + 1, w * channels), np.uint8),
        np.empty((channels, 256), np.uint8),
        np.empty((channels, 256), np.uint8),
        np.empty((channels, 256), np.int32),
        np.empty((channels, 256), np.int32),
        np.empty((channels, 256), np.int32),
    )


@inner
def is_simple(kind: int) -> bool:
    """Whether the operation is cheaper done at once on all pixels than through a table."""
    return kind in (POSTERIZE, SOLARIZE, INVERT)


@inner
def needs_histogram(kind: int) -> bool:
    """Whether the operation's table depends on the image."""
    return kind in (AUTOCONTRAST, EQUALIZE)


@inner
def do_simple(kind: int, value: float, src: Bytes, dst: Bytes) -> None:
    """One of the cheap operations on flat bytes; `dst` may be `src`."""
    if kind == POSTERIZE:
        lookup.posterize(src, int(value), dst)
    elif kind == SOLARIZE:
        lookup.solarize(src, value, dst)
    else:
        lookup.invert(src, dst)


@inner
def make_table(kind: int, value: float, hist: Counts, table: Bytes) -> None:
    """The operation as a look-up; `hist` is read by autocontrast and equalize only."""
    if kind == AUTOCONTRAST:
        lookup.autocontrast(hist, table)
    elif kind == EQUALIZE:
        lookup.equalize(hist, table)
    elif kind == BRIGHTNESS:
        lookup.fade(0, value, table)
    elif kind in (SOLARIZE_ADD, ADD_SOLARIZE):
        lookup.solarize_add(value, kind == ADD_SOLARIZE, table)
    else:
        lookup.ramp(table)
        do_simple(kind, value, table.reshape(-1), table.reshape(-1))


@inner
def histogram(image: Bytes, untouched: bool, counted: bool, looked_up: bool, s: Scratch) -> Counts:
    """The histogram of a chain's image after the look-up that waits, if one does.

    All chains begin with the weak view, so it is counted once per example, and a look-up maps a histogram directly.
    """
    hist = s.weak_hist if untouched else s.hist
    if hist[0, 0] < 0 if untouched else not counted:
        lookup.count(image, hist)
    if looked_up:
        lookup.count_looked_up(hist, s.table, s.looked)
    return s.looked if looked_up else hist


@inner
def move(kind: int, value: float, fill: Bytes, nearest: bool, src: Bytes, s: Scratch, dst: Bytes) -> None:
    """One of the geometric operations."""
    h, w, _ = src.shape
    if kind == TRANSLATE_X:
        warp.translate(src, int(np.floor(value + 0.5)), 0, fill, dst)
    elif kind == TRANSLATE_Y:
        warp.translate(src, 0, int(np.floor(value + 0.5)), fill, dst)
    elif nearest:
        a, b, c, d, e, f = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0
        if kind == ROTATE:
            a, b, c, d, e, f = warp.rotation(value, h, w)
        elif kind == SHEAR_X:
            b = value
        else:
            d = value
        warp.affine_nearest(src, a, b, c, d, e, f, fill, dst)
    elif kind == ROTATE:
        warp.rotate(src, value, fill, s.wide, dst)
    elif kind == SHEAR_X:
        warp.shear_x(src, value, fill, dst)
    else:
        warp.shear_y(src, value, fill, s.weights, s.stairs, dst)


@inner
def repaint(kind: int, args: Floats, outside: Outside, src: Bytes, s: Scratch, dst: Bytes) -> None:
    """Any operation that needs more than a value at a time."""
    if kind == COLOR:
        paint.color(src, args[0], dst)
    elif kind == SHARPNESS:
        paint.sharpness(src, args[0], dst)
    elif kind == CUTOUT:
        paint.cutout(src, int(args[0]), args[1], args[2], outside.fill[kind], dst)
    else:
        move(kind, args[0], outside.fill[kind], outside.nearest[kind], src, s, dst)


@inner
def settle(waiting: int, kind: int, value: float, src: Bytes, s: Scratch, dst: Bytes) -> None:
    """Carries out what has been waiting."""
    if waiting == SIMPLE:
        do_simple(kind, value, src.reshape(-1), dst.reshape(-1))
    else:
        lookup.look_up(src, s.table, dst)


@inner
def run_chain(weak: Bytes, ops: Codes, args: Floats, outside: Outside, s: Scratch, own: int, spare: int) -> int:
    """Applies ops (depth,) with args (depth, 3) in order; returns the slot of the result, or WEAK if nothing changed.

    Operations on single values wait until pixels move or the chain ends, so that consecutive ones cost a single pass.
    """
    depth = ops.shape[0]
    at, counted = WEAK, False
    waiting, kind_waiting, value_waiting = NONE, IDENTITY, 0.0
    for k in range(depth + 1):
        kind, value = (int(ops[k]), args[k, 0]) if k < depth else (END, 0.0)
        if kind == IDENTITY or (ROTATE <= kind <= TRANSLATE_Y and value == 0.0):
            continue
        if is_simple(kind) and waiting == NONE:
            waiting, kind_waiting, value_waiting = SIMPLE, kind, value
            continue
        image = weak if at == WEAK else s.slots[at]
        if kind < CONTRAST:
            if waiting == SIMPLE:
                make_table(kind_waiting, value_waiting, s.hist, s.table)
            hist = s.hist
            if needs_histogram(kind):
                hist = histogram(image, at == WEAK, counted, waiting != NONE, s)
                counted = True
            make_table(kind, value, hist, s.table if waiting == NONE else s.then)
            if waiting != NONE:
                lookup.compose(s.table, s.then)
            waiting = TABLE
            continue
        to = own if at != own else spare
        if waiting != NONE:
            settle(waiting, kind_waiting, value_waiting, image, s, s.slots[to])
            at, image, to = to, s.slots[to], spare if to == own else own
            waiting, counted = NONE, False
        if kind == CONTRAST:
            lookup.fade(paint.mean_grey(image), value, s.table)
            waiting = TABLE
        elif kind != END:
            repaint(kind, args[k], outside, image, s, s.slots[to])
            at = to
    return at
