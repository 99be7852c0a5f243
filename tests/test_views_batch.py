"""Batches at a lower resolution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from rte.views.batch import Batch, ViewPlan


def batch(size: tuple[int, int] = (12, 8), second: Batch | None = None) -> Batch:
    views = torch.rand(6, 3, *size, generator=torch.Generator().manual_seed(0)).to(memory_format=torch.channels_last)
    return Batch(views, torch.arange(2), torch.tensor([5, 3]), ViewPlan(1, 2), second)


def pillow(plane: Tensor, size: tuple[int, int]) -> Tensor:
    """A plane (H, W) of floats brought to a size by Pillow, whose bilinear filter widens when it shrinks."""
    image = Image.fromarray(plane.numpy()).resize(size[::-1], Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(image))


@pytest.mark.parametrize(("share", "size"), [(0.5, (6, 4)), (0.75, (9, 6)), (0.1, (4, 4)), (0.9, (11, 7))])
def test_pixels_are_means_of_those_they_stand_for(share: float, size: tuple[int, int]) -> None:
    whole = batch()
    small = whole.shrunk(share)
    assert small.views.shape[2:] == size
    for part, full in zip(small.views.flatten(0, 1), whole.views.flatten(0, 1), strict=True):
        torch.testing.assert_close(part, pillow(full, size), atol=1e-5, rtol=0)


def test_only_the_pixels_change() -> None:
    whole = batch(second=batch())
    small = whole.shrunk(0.5)
    assert small.views.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(small.y, whole.y)
    assert torch.equal(small.i, whole.i)
    assert small.plan == whole.plan
    assert torch.equal(small.strong(1), whole.shrunk(0.5).views[4:])
    assert small.second is not None
    assert small.second.views.shape[2:] == (6, 4)


def test_at_full_size_nothing_is_copied() -> None:
    whole = batch()
    assert whole.shrunk(1.0) is whole
    tiny = batch((3, 3))
    assert tiny.shrunk(0.1) is tiny  # smaller than the least there is
