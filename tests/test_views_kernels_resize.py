"""Resizing against Pillow, to the byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from rte.views import kernels

SIDES = st.integers(1, 60)


def pillow_resize(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Channel by channel first to the height, then to the width: in one call, the order depends on Pillow's version."""
    layers = []
    for c in range(image.shape[2]):
        fewer = Image.fromarray(image[..., c]).resize((image.shape[1], size[0]), Image.Resampling.BILINEAR)
        layers.append(np.asarray(fewer.resize(size[::-1], Image.Resampling.BILINEAR)))
    return np.stack(layers, -1)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), st.sampled_from([1, 3]), st.booleans())
def test_a_box_is_cropped_resized_and_flipped_as_in_pillow(
    data: st.DataObject, have: tuple[int, int], want: tuple[int, int], channels: int, flip: bool
) -> None:
    image = np.random.default_rng(sum(have)).integers(0, 256, (*have, channels), dtype=np.uint8)
    height, width = data.draw(st.integers(1, have[0])), data.draw(st.integers(1, have[1]))
    top, left = data.draw(st.integers(0, have[0] - height)), data.draw(st.integers(0, have[1] - width))
    out = np.empty((*want, channels), np.uint8)
    kernels.resize(image, (top, left, height, width), want, (0, 0), flip, out)
    expected = pillow_resize(image[top : top + height, left : left + width], want)
    np.testing.assert_array_equal(out, expected[:, ::-1] if flip else expected)


def test_a_part_of_the_resized_image_is_that_part() -> None:
    image = np.random.default_rng(0).integers(0, 256, (150, 201, 3), dtype=np.uint8)
    whole = pillow_resize(image, (64, 86))
    for flip in (False, True):
        out = np.empty((50, 60, 3), np.uint8)
        kernels.resize(image, (0, 0, 150, 201), (64, 86), (7, 13), flip, out)
        part = whole[7:57, 13:73]
        np.testing.assert_array_equal(out, part[:, ::-1] if flip else part)
