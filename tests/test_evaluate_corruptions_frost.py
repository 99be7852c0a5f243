"""Frost: the procedural textures have the statistics they claim, and photographs are used where given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rte.errors import DataError
from rte.evaluate.corruptions import corrupt
from rte.evaluate.corruptions.frost import PHOTOGRAPHS, TINTS, paint, textures


@pytest.mark.parametrize("number", range(5))
def test_procedural_frost_has_the_colours_of_the_photographs(number: int) -> None:
    picture = paint(number, 1).astype(float)
    mean, spread = TINTS[number]
    assert picture.shape == (128, 128, 3)
    assert picture.mean((0, 1)) == pytest.approx(mean, abs=3)
    assert picture.std((0, 1)) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("scale", [1, 5])
def test_procedural_frost_is_grainy_near_and_cloudy_far(scale: int) -> None:
    field = paint(4, scale)[..., 1].astype(float)
    field -= field.mean()

    def likeness(pixels: int) -> float:
        """The correlation of pixels so far apart, going round at the edge."""
        return float((field * np.roll(field, pixels, 1)).mean() / field.var())

    assert 0.45 < likeness(1) < 0.75
    assert 0.2 < likeness(8 * scale) < 0.5
    assert likeness(1) > likeness(2 * scale) > likeness(8 * scale)


def test_the_five_textures_differ_and_stay_the_same() -> None:
    pictures = [paint(number, 1) for number in range(5)]
    assert len({picture.tobytes() for picture in pictures}) == 5
    assert np.array_equal(pictures[2], paint(2, 1))
    packed = textures(None, small=True)
    assert np.array_equal(packed.pixels[packed.starts[3] :][: 128 * 128].reshape(128, 128, 3), pictures[3])


def photographs(folder: Path, size: tuple[int, int]) -> Path:
    """Five pictures: t in red, row in green, column in blue."""
    height, width = size
    for number, name in enumerate(PHOTOGRAPHS):
        picture = np.empty((height, width, 3), np.uint8)
        picture[..., 0], picture[..., 1], picture[..., 2] = 40 * number, np.arange(height)[:, None], np.arange(width)
        # JPEG would blur the coordinates; the reader goes by the content, not by the name.
        Image.fromarray(picture).save(folder / name, "PNG")
    return folder


def test_photographs_are_reduced_to_every_fifth_pixel_and_cropped(tmp_path: Path) -> None:
    black = np.zeros((300, 8, 6, 3), np.uint8)
    found = corrupt(black, "frost", 4, seed=0, frost=photographs(tmp_path, (100, 160)))
    restored = found / 0.4
    assert {int(v) for v in np.round(restored[:, 0, 0, 0])} <= {0, 40, 80, 120, 160}
    assert len(np.unique(found[:, 0, 0, 0])) == 5
    rows, cols = restored[..., 1], restored[..., 2]
    assert np.diff(rows, axis=1).mean() == pytest.approx(5, abs=0.1)
    assert np.diff(cols, axis=2).mean() == pytest.approx(5, abs=0.1)
    tops = np.round((rows[:, 0, 0] - 2) / 5)
    assert set(tops.astype(int)) == set(range(20 - 8))  # every place but, as published, the last


def test_a_window_larger_than_the_photograph_goes_round(tmp_path: Path) -> None:
    found = corrupt(np.zeros((3, 32, 32, 3), np.uint8), "frost", 4, seed=0, frost=photographs(tmp_path, (60, 60)))
    assert np.array_equal(found[:, :12], found[:, 12:24])


def test_a_missing_photograph_is_named(tmp_path: Path) -> None:
    photographs(tmp_path, (60, 60))
    (tmp_path / "frost3.png").unlink()
    with pytest.raises(
        DataError, match=r"frost3\.png is missing or no picture, but the folder for frost must hold frost1"
    ):
        corrupt(np.zeros((1, 8, 8, 3), np.uint8), "frost", 1, seed=0, frost=tmp_path)


def test_a_damaged_photograph_is_named(tmp_path: Path) -> None:
    photographs(tmp_path, (60, 60))
    (tmp_path / "frost5.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"frost5\.jpg is missing or no picture"):
        corrupt(np.zeros((1, 8, 8, 3), np.uint8), "frost", 1, seed=0, frost=tmp_path)
