"""Whole batches: the crop and flip of weak views, the mixing of strong ones, normalisation.

Scratch memory is allocated once per call, and calls do not hold the GIL.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rte.jit import inner, kernel
from rte.views.kernels_chain import WEAK, Bytes, Codes, Outside, run_chain, scratch

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel
def crop_and_flip(
    src: Bytes, shift: Integers, flip: NDArray[np.bool_], rows: Integers, columns: Integers, dst: Bytes
) -> None:
    """dst (V, B, H, W, C): for each view the padded image src (B, H, W, C) from `shift` (B, V, 2) on, flipped or not.

    rows (H + 2 pad,) and columns (W + 2 pad,) say which row and column a padded one shows; -1 is black.
    """
    views, b, h, w, c = dst.shape
    for v in range(views):
        for i in range(b):
            for y in range(h):
                row = rows[y + shift[i, v, 0]]
                for x in range(w):
                    column = columns[(w - 1 - x if flip[i, v] else x) + shift[i, v, 1]]
                    for k in range(c):
                        dst[v, i, y, x, k] = src[i, row, column, k] if row >= 0 and column >= 0 else np.uint8(0)


@kernel
def normalise(src: Bytes, scale: Singles, bias: Singles, out: Singles) -> None:
    """out = src * scale + bias for rows (n, W * C); scale and bias are (W * C,)."""
    for y in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[y, j] = np.float32(src[y, j]) * scale[j] + bias[j]


@inner
def mix(
    weak: Bytes, one: Bytes, two: Bytes, three: Bytes, k: Singles, scale: Singles, bias: Singles, out: Singles
) -> None:
    """out = (k0 weak + k1 one + k2 two + k3 three) * scale + bias for images of rows (H, W * C)."""
    k0, k1, k2, k3 = k[0], k[1], k[2], k[3]
    for y in range(out.shape[0]):
        for j in range(out.shape[1]):
            first = k0 * np.float32(weak[y, j]) + k1 * np.float32(one[y, j])
            second = k2 * np.float32(two[y, j]) + k3 * np.float32(three[y, j])
            out[y, j] = (first + second) * scale[j] + bias[j]


@inner
def add(src: Bytes, k: np.float32, scale: Singles, out: Singles) -> None:
    """out += k src * scale for images of rows (H, W * C)."""
    for y in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[y, j] += k * np.float32(src[y, j]) * scale[j]


@inner
def image_at(slot: int, weak: Bytes, slots: Bytes) -> Bytes:
    """The result of a chain."""
    return weak if slot == WEAK else slots[slot]


@kernel
def strong_views(
    weak: Bytes,
    ops: Codes,
    args: Doubles,
    mixing: Singles,
    outside: Outside,
    scale: Singles,
    bias: Singles,
    out: Singles,
) -> None:
    """All strong views of a batch of weak ones: weak (B, H, W, C) to out (V, B, H, W, C).

    ops (B, V, width, depth), args (B, V, width, depth, 3), mixing (B, V, 1 + width): the share of the weak view, then
    that of each chain.
    """
    b, h, w, c = weak.shape
    views, width = ops.shape[1], ops.shape[2]
    s = scratch(max(width, 3), h, w, c)
    free = s.slots.shape[0] - 1
    slots = np.empty(free + 1, np.int64)
    k = np.empty(4, np.float32)
    images = s.slots.reshape(free + 1, h, w * c)
    weak_rows, out_rows = weak.reshape(b, h, w * c), out.reshape(views, b, h, w * c)
    for i in range(b):
        s.weak_hist[0, 0] = -1
        base = weak_rows[i]
        for v in range(views):
            k[:] = np.float32(0.0)
            k[0] = mixing[i, v, 0]
            for n in range(free + 1):
                slots[n] = n
            for n in range(width):
                at = run_chain(weak[i], ops[i, v, n], args[i, v, n], outside, s, slots[n], slots[free])
                if at == slots[free]:
                    slots[n], slots[free] = slots[free], slots[n]
                elif at == WEAK:
                    slots[n] = WEAK
                if n < 3:
                    k[0 if at == WEAK else n + 1] += mixing[i, v, n + 1]
            for n in range(width, 3):
                slots[n] = WEAK
            one, two, three = (
                image_at(slots[0], base, images),
                image_at(slots[1], base, images),
                image_at(slots[2], base, images),
            )
            mix(base, one, two, three, k, scale, bias, out_rows[v, i])
            for n in range(3, width):
                add(image_at(slots[n], base, images), mixing[i, v, n + 1], scale, out_rows[v, i])
