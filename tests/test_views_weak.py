"""Crops and flips: where they lie, and what the border shows."""

from __future__ import annotations

import numpy as np
import pytest

from rte.views import weak
from rte.views.config import ViewConfig
from rte.views.sampling import states


def drawn(n: int, views: int = 2, **settings: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return weak.draw(states(np.arange(n), seed=0, epoch=0, stream=0), views, ViewConfig.model_validate(settings))


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("pad", [0, 1, 4, 9])
def test_the_border_is_numpys(n: int, pad: int) -> None:
    row = np.arange(n)
    np.testing.assert_array_equal(weak.padded(n, pad, "zero"), np.pad(row, pad, constant_values=-1))
    np.testing.assert_array_equal(weak.padded(n, pad, "reflect"), np.pad(row, pad, "reflect"))


def test_shifts_are_all_equally_likely() -> None:
    place, _, flip = drawn(9000)
    shift = weak.shifts(place, 4)
    for axis in range(2):
        counts = np.bincount(shift[..., axis].ravel(), minlength=9)
        assert len(counts) == 9
        assert np.abs(counts / counts.sum() - 1 / 9).max() < 0.012
    assert abs(flip.mean() - 0.5) < 0.02
    assert weak.shifts(place, 0).max() == 0


def test_views_differ_and_flips_can_be_switched_off() -> None:
    place, _, flip = drawn(100)
    assert (place[:, 0] != place[:, 1]).all()
    assert (flip[:, 0] != flip[:, 1]).any()
    assert not drawn(100, flip=False)[2].any()


def test_resized_crops_have_the_area_and_shape_asked_for() -> None:
    place, box, _ = drawn(4000, 1, scale=(0.2, 0.7))
    assert box[..., 0].min() >= 0.2
    assert box[..., 0].max() <= 0.7
    assert abs(np.log(box[..., 1]).mean()) < 0.01
    h, w = 300, 400
    for i in range(4000):
        top, left, height, width = weak.resized_crop(box[i, 0], place[i, 0], h, w)
        assert 0 <= top <= h - height
        assert 0 <= left <= w - width
        assert 0.19 < height * width / (h * w) < 0.71
        assert 0.73 < width / height < 1.37


def test_a_later_attempt_is_taken_if_the_first_does_not_fit() -> None:
    box = np.array([[1.0, 4 / 3], [0.25, 1.0]])
    assert weak.resized_crop(box, np.array([0.999, 0.0]), 100, 100) == (50, 0, 50, 50)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((100, 10), (43, 0, 13, 10)), ((10, 100), (0, 43, 10, 13)), ((10, 12), (0, 0, 10, 12)), ((1, 1), (0, 0, 1, 1))],
)
def test_without_a_fitting_attempt_the_middle_is_shown(size: tuple[int, int], expected: tuple[int, ...]) -> None:
    never = np.full((10, 2), 9.0)
    assert weak.resized_crop(never, np.zeros(2), *size) == expected


def test_evaluation_shows_seven_eighths_of_the_shorter_side() -> None:
    assert weak.centre_crop(512, 1024, (224, 224)) == ((256, 512), (16, 144))
    assert weak.centre_crop(1024, 512, (224, 224)) == ((512, 256), (144, 16))
    full, offset = weak.centre_crop(3, 1000, (2, 2))
    assert all(offset[k] + 2 <= full[k] for k in range(2))
