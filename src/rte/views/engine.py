"""The view engine: draws what to do to each image, then does it, straight into the network's input.

    params = engine.sample(index, seed=0, epoch=3, plan=ViewPlan(weak=1, strong=2))
    x = engine.apply(images, params)          # ((1 + 2) * B, H, W, C) float32, normalised: weak views, then strong ones

Every strong view is made from the first weak view, byte for byte the crop the network sees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rte.data.types import Source, as_images
from rte.errors import DataError
from rte.views import augmix, kernels, randaugment, weak
from rte.views.batch import ViewPlan
from rte.views.config import ViewConfig
from rte.views.operations import Operation
from rte.views.reading import OneByOne
from rte.views.sampling import ViewParams, branch, states

Bytes = NDArray[np.uint8]
Singles = NDArray[np.float32]


class ViewEngine:
    """Views of size (H, W) with 1 or 3 channels, as (value / 255 - mean) / std. Several threads may use one engine."""

    def __init__(
        self, cfg: ViewConfig, *, mean: Sequence[float], std: Sequence[float], size: tuple[int, int], channels: int
    ) -> None:
        if not len(mean) == len(std) == channels or min(std) <= 0:
            raise DataError(
                f"images with {channels} channels cannot be normalised by mean {tuple(mean)} and std {tuple(std)}; "
                "give one mean and one std above 0 per channel."
            )
        self.cfg, self.size, self.channels = cfg, size, channels
        self.finish = kernels.scaling(mean, std, size[1])
        self._variant = randaugment.VARIANTS.get(cfg.strong)
        self.table: tuple[Operation, ...] = augmix.TABLE if self._variant is None else self._variant.rows
        self._rows, self._columns = (weak.padded(n, cfg.pad, cfg.border) for n in size)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one view: (H, W, C)."""
        return *self.size, self.channels

    def fetch(self, source: Source, index: NDArray[np.int64]) -> Bytes | Sequence[Bytes]:
        """The images: at once where they have the views' size, else one by one, since photographs fill the memory."""
        images = as_images(source)
        return images.fetch(index) if images.size == self.size else OneByOne(images, index)

    def tensor(self, views: Tensor) -> Tensor:
        """(B, H, W, C) as (B, C, H, W), channels_last."""
        return views.permute(0, 3, 1, 2)

    @property
    def looks(self) -> int:
        """At an image, for a prediction."""
        return 2 if self.cfg.mirror else 1

    def mirrored(self, x: Tensor) -> Tensor | None:
        """The mirror image of each, with `views.mirror`."""
        return x.flip(3) if self.cfg.mirror else None

    def sample(
        self,
        index: NDArray[np.int64],
        *,
        seed: int,
        epoch: int,
        plan: ViewPlan,
        stream: int = 0,
        again: NDArray[np.int64] | None = None,
    ) -> ViewParams:
        """Draws the views of examples `index` (B,); those of one example do not depend on the others.

        An example that has come `again` (B,) times before gets other views each time.
        """
        drawn = states(np.asarray(index, np.int64), seed=seed, epoch=epoch, stream=stream, again=again)
        state = branch(drawn, 2)
        place, box, flip = weak.draw(state[:, 0], plan.weak, self.cfg)
        cfg, variant = self.cfg, self._variant
        if variant is None:
            op, arg, mixing = augmix.draw(
                state[:, 1], plan.strong, width=cfg.width, severity=cfg.severity, depth=cfg.depth, size=self.size
            )
        else:
            num_ops = variant.num_ops if cfg.num_ops is None else cfg.num_ops
            magnitude = variant.magnitude if cfg.magnitude is None else cfg.magnitude
            op, arg, mixing = randaugment.draw(state[:, 1], plan.strong, variant, num_ops, magnitude, self.size)
        return ViewParams(plan, place, box, flip, op, arg, mixing)

    def apply(self, images: Bytes | Sequence[Bytes], params: ViewParams, out: Singles | None = None) -> Singles:
        """The views that `params` describe, ((weak + strong) * B, H, W, C), view by view; into `out` if it is given.

        images (B, H, W, C) of the engine's size are padded, cropped and flipped; images of another size, or a list of
        images (h, w, C) of differing sizes, give random resized crops.
        """
        b, plan = len(params.flip), params.plan
        if len(images) != b:
            raise DataError(
                f"{len(images)} images for the parameters of {b}; give the images the views were drawn for."
            )
        views = self._memory(plan.total * b, out)
        crops = self._crops(images, params)
        kernels.normalise(crops, self.finish, views[: plan.weak * b])
        if plan.strong:
            into = views[plan.weak * b :].reshape(plan.strong, b, *views.shape[1:])
            kernels.strong(crops[0], params.op, params.arg, params.mixing, self.table, self.finish, into)
        return views

    def render(
        self,
        images: Bytes | Sequence[Bytes],
        index: NDArray[np.int64],
        *,
        seed: int,
        epoch: int,
        plan: ViewPlan,
        stream: int = 0,
        again: NDArray[np.int64] | None = None,
        out: Singles | None = None,
    ) -> Singles:
        """`sample`, then `apply`."""
        drawn = self.sample(index, seed=seed, epoch=epoch, plan=plan, stream=stream, again=again)
        return self.apply(images, drawn, out)

    def plain(self, images: Bytes | Sequence[Bytes], out: Singles | None = None) -> Singles:
        """The views for evaluation, (B, H, W, C): each image or, at another size, its middle 7/8, resized."""
        crops: Bytes
        if self._fits(images):
            crops = np.asarray(images)
            self._check(crops[0])
        else:
            crops = np.empty((len(images), *self.size, self.channels), np.uint8)
            for image, crop in zip(images, crops, strict=True):
                self._check(image)
                h, w = image.shape[:2]
                if (h, w) == self.size:  # whatever the others' sizes: what is seen of an image is a matter of it alone
                    crop[:] = image
                    continue
                kernels.resize(image, (0, 0, h, w), *weak.centre_crop(h, w, self.size), False, crop)
        views = self._memory(len(crops), out)
        kernels.normalise(crops, self.finish, views)
        return views

    def _memory(self, n: int, out: Singles | None) -> Singles:
        shape = (n, *self.shape)
        if out is None:
            return np.empty(shape, np.float32)
        if out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
            raise DataError(
                f"out has shape {out.shape} and dtype {out.dtype}; give a contiguous float32 array of shape {shape}."
            )
        return out

    def _fits(self, images: Bytes | Sequence[Bytes]) -> bool:
        return isinstance(images, np.ndarray) and images.shape[1:3] == self.size

    def _check(self, image: Bytes) -> None:
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != self.channels or 0 in image.shape:
            raise DataError(
                f"an image has dtype {image.dtype} and shape {image.shape}; "
                f"give uint8 images of shape (height, width, {self.channels})."
            )

    def _crops(self, images: Bytes | Sequence[Bytes], params: ViewParams) -> Bytes:
        """The weak views as bytes, (weak, B, H, W, C)."""
        if self._fits(images):
            self._check(np.asarray(images)[0])
            shift = weak.shifts(params.place, self.cfg.pad)
            return kernels.crop_and_flip(np.asarray(images), shift, params.flip, self._rows, self._columns)
        crops = np.empty((params.plan.weak, len(images), *self.size, self.channels), np.uint8)
        for i, image in enumerate(images):
            self._check(image)
            for v in range(params.plan.weak):
                box = weak.resized_crop(params.box[i, v], params.place[i, v], *image.shape[:2])
                kernels.resize(image, box, self.size, (0, 0), bool(params.flip[i, v]), crops[v, i])
        return crops
