"""What a method is handed at each step: views of some examples, their given labels, their indices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST = 4
"""Views are not made smaller than this many pixels a side."""

IMAGES = 4
"""Dimensions of a batch of images."""


@dataclass(frozen=True)
class ViewPlan:
    """How many views of each example a step needs: weak ones (crop, flip) and strong ones of the first weak view.

    `second` is the plan of the pass's second stream; None: the same.
    """

    weak: int = 1
    strong: int = 0
    second: ViewPlan | None = None

    @property
    def total(self) -> int:
        return self.weak + self.strong


@dataclass(frozen=True)
class Batch:
    """`views` ((weak + strong) * B, ...): first all weak views, then all strong ones, view by view.

    A view of an image is (C, H, W), channels_last; of a vector (D,). `y` (B,) are the given labels, `i` (B,) the
    examples' indices in the training set. `second` is the batch of the pass's second stream, where it has one.
    """

    views: Tensor
    y: Tensor
    i: Tensor
    plan: ViewPlan
    second: Batch | None = None

    def __len__(self) -> int:
        return len(self.y)

    def weak(self, k: int = 0) -> Tensor:
        """The k-th weak view, (B, ...)."""
        return self.views[k * len(self) : (k + 1) * len(self)]

    def strong(self, k: int = 0) -> Tensor:
        """The k-th strong view, (B, ...)."""
        return self.weak(self.plan.weak + k)

    @property
    def x(self) -> Tensor:
        """The first weak view."""
        return self.weak(0)

    def shrunk(self, share: float) -> Batch:
        """The same views with sides of `share` of the length, each pixel the mean of those it stands for.

        Vectors stay as they are.
        """
        if self.views.ndim < IMAGES:
            return self
        height, width = (max(min(n, SMALLEST), round(share * n)) for n in self.views.shape[2:])
        if (height, width) == self.views.shape[2:]:
            return self
        views = F.interpolate(self.views, (height, width), mode="bilinear", antialias=True)
        second = None if self.second is None else self.second.shrunk(share)
        return replace(self, views=views, second=second)

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device; no copy if it is there already."""
        # only page-locked memory stays as it is until the device has read it: the loader uses other memory again
        move = [part.to(device, non_blocking=part.is_pinned()) for part in (self.views, self.y, self.i)]
        second = None if self.second is None else self.second.to(device)
        return replace(self, views=move[0], y=move[1], i=move[2], second=second)
