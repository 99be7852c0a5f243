"""Thumbnails: in their place in a sheet, as large as the bytes allow, and never more bytes than that."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from rte.data.types import ArrayImages, Pixels
from rte.report.page.pictures import ACROSS, GROUND, PER_SHEET, Sheets, sheets, thumbnail


def plain(n: int, side: int, *, noise: bool = False) -> ArrayImages:
    draw = np.random.default_rng(0)
    if noise:
        return ArrayImages(draw.integers(0, 256, (n, side, side, 3)).astype(np.uint8))
    colours = draw.integers(0, 256, (n, 1, 1, 3)).astype(np.uint8)
    return ArrayImages(np.broadcast_to(colours, (n, side, side, 3)).copy())


def tile(made: Sheets, k: int) -> Pixels:
    data = base64.b64decode(made.sheets[k // PER_SHEET].split(",", 1)[1])
    sheet = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    at, side = k % PER_SHEET, made.side
    return sheet[at // ACROSS * side :, at % ACROSS * side :][:side, :side]


def test_each_lies_in_its_place() -> None:
    images, index = plain(250, 16), np.arange(249, -1, -1)
    made = sheets(images, index, most=10_000_000)
    assert (made.side, made.shown, len(made.sheets)) == (16, 250, 3)
    for k in (0, 9, 99, 100, 249):
        assert np.array_equal(tile(made, k), images.pixels[index[k]])  # so few lose nothing


@pytest.mark.parametrize("most", [300_000, 60_000, 8_000])
def test_the_bytes_are_kept(most: int) -> None:
    made = sheets(plain(200, 48, noise=True), np.arange(200), most=most)
    assert sum(map(len, made.sheets)) <= most
    assert made.side <= 48
    if most > 100_000:
        assert made.shown == 200


def test_more_bytes_are_larger_pictures() -> None:
    sides = [sheets(plain(100, 64, noise=True), np.arange(100), most=most).side for most in (30_000, 2_000_000)]
    assert sides[0] < sides[1]


def test_what_takes_too_long_is_left_out() -> None:
    made = sheets(plain(500, 16), np.arange(500), most=10_000_000, seconds=0.0)
    assert made.shown == PER_SHEET


def test_pictures_that_are_no_squares_lie_in_the_middle() -> None:
    made = np.asarray(thumbnail(np.full((10, 40, 1), 255, np.uint8), 20))
    assert made.shape == (20, 20, 3)
    assert (made[0] == GROUND).all()
    assert (made[10] == 255).all()
