"""AugMix (Hendrycks et al., ICLR 2020): chains of mild operations, mixed with each other and with the image.

    view = (1 - m) image + m * sum_i w_i chain_i(image),   m ~ U(0, 1),   w ~ Dirichlet(1, .., 1)

Every operation of a chain is drawn from the same nine, with a strength of its own from U(0.1, severity), out of 10, and
works on bytes; the mixture is not rounded to bytes again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rte.errors import ConfigError, DataError
from rte.views import kernels
from rte.views.operations import Floats, Kind, Operation, arguments, by_view
from rte.views.sampling import States, branch, pick, states, uniform

TABLE = (
    Operation(Kind.AUTOCONTRAST),
    Operation(Kind.EQUALIZE),
    Operation(Kind.POSTERIZE, lambda level, side: 4 - np.trunc(level * 4 / 10), integer=True),
    Operation(Kind.ROTATE, lambda level, side: level * 30 / 10, signed=True, integer=True),
    Operation(Kind.SOLARIZE, lambda level, side: 256 - np.trunc(level * 256 / 10), integer=True),
    Operation(Kind.SHEAR_X, lambda level, side: level * 0.3 / 10, signed=True),
    Operation(Kind.SHEAR_Y, lambda level, side: level * 0.3 / 10, signed=True),
    Operation(Kind.TRANSLATE_X, lambda level, side: level * (side / 3) / 10, signed=True, integer=True),
    Operation(Kind.TRANSLATE_Y, lambda level, side: level * (side / 3) / 10, signed=True, integer=True),
)
DEEPEST = 3


def draw(
    state: States, views: int, *, width: int, severity: float, depth: int, size: tuple[int, int]
) -> tuple[NDArray[np.int8], Floats, NDArray[np.float32]]:
    """`op`, `arg` and `mixing` of `ViewParams` for states (B,); depth -1: one to three operations per chain."""
    longest = DEEPEST if depth < 0 else depth
    u = uniform(branch(state, views), 1 + width * (2 + 3 * longest))
    m, share, length = u[0], u[1 : 1 + width], u[1 + width : 1 + 2 * width]
    each = u[1 + 2 * width :].reshape(3, width, longest, *m.shape)
    row = pick(each[0], len(TABLE))
    if depth < 0:
        row[np.arange(longest)[:, None, None] > pick(length, longest)[:, None]] = -1
    level = 0.1 + (severity - 0.1) * each[1]
    value = arguments(TABLE, row, level, np.where(each[2] < 0.5, -1.0, 1.0), size)
    share = -np.log1p(-share)  # exponential draws, divided by their sum, are Dirichlet(1, .., 1)
    share *= m / np.maximum(share.sum(0), np.finfo(np.float64).tiny)
    op, arg = by_view(TABLE, row, value)
    return op, arg, np.concatenate([1.0 - m[..., None], np.moveaxis(share, 0, -1)], -1).astype(np.float32)


class AugMix:
    """AugMix on its own, for any uint8 images.

    >>> views = AugMix(width=3, severity=3)(images, seed=0)
    """

    def __init__(self, width: int = 3, severity: float = 3, depth: int = -1) -> None:
        if width < 1 or not 0.1 < severity <= 10 or (depth < 1 and depth != -1):
            raise ConfigError(
                f"AugMix(width={width}, severity={severity}, depth={depth}) is not possible; give width >= 1, "
                "a severity above 0.1 and up to 10, and depth -1 (drawn from 1 to 3) or >= 1."
            )
        self.width, self.severity, self.depth = width, severity, depth

    def __call__(
        self, images: NDArray[np.uint8], *, seed: int, index: Sequence[int] | NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """One strong view of each image, same shape, in 0..255 and not rounded.

        images (N, H, W, C), (H, W, C) or (N, H, W), with C 1 or 3; index (N,) names the images, 0..N-1 unless given.
        A view depends on the seed, its image's name and the image, not on the others.
        """
        batch = as_batch(images)
        names = np.arange(len(batch)) if index is None else np.asarray(index, np.int64).reshape(-1)
        if len(names) != len(batch):
            raise DataError(f"AugMix was given {len(batch)} images but {len(names)} indices; give one index per image.")
        _, h, w, channels = batch.shape
        state = branch(states(names, seed=seed, epoch=0, stream=0), 2)[:, 1]
        op, arg, mixing = draw(state, 1, width=self.width, severity=self.severity, depth=self.depth, size=(h, w))
        out = np.empty((1, *batch.shape), np.float32)
        kernels.strong(batch, op, arg, mixing, TABLE, kernels.raw(w, channels), out)
        return out.reshape(images.shape)


def as_batch(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, H, W, C); a last axis of 1 or 3 means channels."""
    shape = images.shape
    if images.dtype == np.uint8 and len(shape) == 4 and shape[3] in (1, 3):
        return images
    if images.dtype == np.uint8 and len(shape) == 3:
        return images[None] if shape[2] in (1, 3) else images[..., None]
    raise DataError(
        f"AugMix was given images of dtype {images.dtype} and shape {shape}; give uint8 images of shape (N, H, W, C), "
        "(H, W, C) or (N, H, W), with 1 or 3 channels."
    )
