"""The engine: layout, exactness of weak views, and what views may depend on."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rte.errors import DataError
from rte.views import weak
from rte.views.batch import ViewPlan
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.operations import Kind
from rte.views.randaugment import VARIANTS
from rte.views.sampling import ViewParams
from tests.oracles import padded_crop
from tests.test_views_kernels_resize import pillow_resize

MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (7, 16, 12, 3), dtype=np.uint8)
INDEX = np.array([3, 1, 4, 15, 9, 2, 6])
STRONG = ["augmix", *VARIANTS]


def engine(shape: tuple[int, int] = (16, 12), channels: int = 3, **settings: Any) -> ViewEngine:
    cfg = ViewConfig.model_validate(settings)
    return ViewEngine(cfg, mean=MEAN[:channels], std=STD[:channels], size=shape, channels=channels)


def finished(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(v / 255 - mean) / std in float64."""
    channels = image.shape[-1]
    return (image / 255.0 - np.array(MEAN[:channels])) / np.array(STD[:channels])


def same(one: ViewParams, two: ViewParams, rows: slice | NDArray[np.int64] = slice(None)) -> None:
    for field in fields(ViewParams):
        if field.name != "plan":
            np.testing.assert_array_equal(getattr(one, field.name)[rows], getattr(two, field.name), field.name)


@pytest.mark.parametrize("border", ["zero", "reflect"])
def test_weak_views_are_padded_cropped_flipped_and_normalised(border: str) -> None:
    made = engine(border=border, pad=5)
    params = made.sample(INDEX, seed=1, epoch=0, plan=ViewPlan(2, 0))
    views = made.apply(IMAGES, params).reshape(2, 7, 16, 12, 3)
    shift = weak.shifts(params.place, 5)
    assert len(np.unique(shift)) > 5
    for v in range(2):
        for b in range(7):
            crop = padded_crop(IMAGES[b], *shift[b, v], 5, border, bool(params.flip[b, v]))
            np.testing.assert_allclose(views[v, b], finished(crop), atol=2e-6)
    assert (views[0] != views[1]).any((1, 2, 3)).all()


def test_strong_views_follow_and_are_made_from_the_first_weak_one() -> None:
    made = engine()
    params = made.sample(INDEX, seed=1, epoch=0, plan=ViewPlan(2, 3))
    untouched = replace(params, op=np.full_like(params.op, Kind.IDENTITY))
    views = made.apply(IMAGES, untouched)
    assert views.shape == (35, 16, 12, 3)
    assert views.dtype == np.float32
    assert views.flags.c_contiguous
    per_view = views.reshape(5, 7, 16, 12, 3)
    for k in (2, 3, 4):
        np.testing.assert_allclose(per_view[k], per_view[0], atol=2e-6)
    mixing = np.zeros_like(params.mixing)
    mixing[..., 2] = 1
    turned = replace(untouched, mixing=mixing, op=untouched.op.copy())
    turned.op[:, 1, 1, 2] = Kind.INVERT
    per_view = made.apply(IMAGES, turned).reshape(5, 7, 16, 12, 3)
    shift = weak.shifts(params.place, 4)
    for b in range(7):
        crop = padded_crop(IMAGES[b], *shift[b, 0], 4, "zero", bool(params.flip[b, 0]))
        np.testing.assert_allclose(per_view[3, b], finished(255 - crop), atol=2e-6)


@pytest.mark.parametrize("strong", STRONG)
def test_views_depend_on_their_example_alone(strong: str) -> None:
    made, plan = engine(strong=strong), ViewPlan(2, 3)
    whole = made.render(IMAGES, INDEX, seed=5, epoch=2, plan=plan).reshape(5, 7, 16, 12, 3)
    rows = np.array([6, 2, 0])
    part = made.render(IMAGES[rows], INDEX[rows], seed=5, epoch=2, plan=plan).reshape(5, 3, 16, 12, 3)
    np.testing.assert_array_equal(part, whole[:, rows])
    fewer = made.render(IMAGES, INDEX, seed=5, epoch=2, plan=ViewPlan(1, 1)).reshape(2, 7, 16, 12, 3)
    np.testing.assert_array_equal(fewer, whole[[0, 2]])
    assert (whole[2] != whole[3]).any((1, 2, 3)).sum() >= 5


def test_seed_epoch_and_stream_change_every_view() -> None:
    made, plan = engine(), ViewPlan(1, 1)
    base = {"seed": 5, "epoch": 2, "stream": 0}
    views = made.render(IMAGES, INDEX, **base, plan=plan)
    for change in ({"seed": 6}, {"epoch": 3}, {"stream": 1}):
        other = made.render(IMAGES, INDEX, **{**base, **change}, plan=plan)
        assert (other != views).any((1, 2, 3)).mean() > 0.9


@pytest.mark.parametrize("strong", STRONG)
def test_recorded_parameters_replay_the_views(strong: str) -> None:
    made, plan = engine(strong=strong), ViewPlan(1, 2)
    params = made.sample(INDEX, seed=0, epoch=0, plan=plan)
    views = made.apply(IMAGES, params)
    np.testing.assert_array_equal(views, made.render(IMAGES, INDEX, seed=0, epoch=0, plan=plan))
    record = {field.name: getattr(params, field.name) for field in fields(ViewParams) if field.name != "plan"}
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in record.values())
    rows = np.array([5, 0])
    again = ViewParams(plan, **{name: value[rows] for name, value in record.items()})
    part = made.apply(IMAGES[rows], again).reshape(3, 2, 16, 12, 3)
    np.testing.assert_array_equal(part, views.reshape(3, 7, 16, 12, 3)[:, rows])


def test_parameters_do_not_depend_on_the_batch() -> None:
    made, plan = engine(), ViewPlan(2, 4)
    rows = np.array([4, 4, 1])
    same(made.sample(INDEX, seed=9, epoch=1, plan=plan), made.sample(INDEX[rows], seed=9, epoch=1, plan=plan), rows)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 3)])
@pytest.mark.parametrize("strong", STRONG)
def test_no_image_is_too_odd(size: tuple[int, int], channels: int, strong: str) -> None:
    images = RNG.integers(0, 256, (40, *size, channels), dtype=np.uint8)
    made = engine(size, channels, strong=strong, border="reflect", severity=10.0)
    views = made.render(images, np.arange(40), seed=0, epoch=0, plan=ViewPlan(2, 4))
    assert views.shape == (240, *size, channels)
    low, high = (finished(np.full(channels, v, np.uint8)) for v in (0, 255))
    assert (views >= low - 1e-4).all()
    assert (views <= high + 1e-4).all()


def test_images_of_differing_sizes_become_resized_crops() -> None:
    images = [RNG.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in ((40, 50), (13, 90), (16, 12), (1, 1))]
    made = engine((16, 12), size=16)
    params = made.sample(np.arange(4), seed=2, epoch=0, plan=ViewPlan(2, 1))
    views = made.apply(images, params).reshape(3, 4, 16, 12, 3)
    for b, image in enumerate(images):
        for v in range(2):
            top, left, h, w = weak.resized_crop(params.box[b, v], params.place[b, v], *image.shape[:2])
            crop = pillow_resize(image[top : top + h, left : left + w], (16, 12))
            crop = crop[:, ::-1] if params.flip[b, v] else crop
            np.testing.assert_allclose(views[v, b], finished(crop), atol=2e-6)
    alone = made.render(images[1:2], np.array([1]), seed=2, epoch=0, plan=ViewPlan(2, 1))
    np.testing.assert_array_equal(alone, views[:, 1])


def test_an_array_of_another_size_is_treated_as_its_images() -> None:
    made = engine((10, 10), size=10)
    one = made.render(IMAGES, INDEX, seed=0, epoch=0, plan=ViewPlan(1, 1))
    np.testing.assert_array_equal(one, made.render(list(IMAGES), INDEX, seed=0, epoch=0, plan=ViewPlan(1, 1)))


def test_plain_views_are_the_images_or_their_middle() -> None:
    np.testing.assert_allclose(engine().plain(IMAGES), finished(IMAGES), atol=2e-6)
    big = RNG.integers(0, 256, (64, 96, 3), dtype=np.uint8)
    middle = pillow_resize(big, (32, 48))[2:30, 10:38]
    views = engine((28, 28)).plain([big, big])
    np.testing.assert_allclose(views, finished(np.stack([middle, middle])), atol=2e-6)


def test_views_go_into_the_memory_that_is_given() -> None:
    out = np.full((14, 16, 12, 3), np.nan, np.float32)
    views = engine().render(IMAGES, INDEX, seed=0, epoch=0, plan=ViewPlan(1, 1), out=out)
    assert views is out
    assert np.isfinite(out).all()


def test_read_only_and_strided_images_are_taken() -> None:
    made = engine()
    frozen = IMAGES.copy()
    frozen.flags.writeable = False
    expected = made.render(IMAGES, INDEX, seed=0, epoch=0, plan=ViewPlan(1, 1))
    np.testing.assert_array_equal(made.render(frozen, INDEX, seed=0, epoch=0, plan=ViewPlan(1, 1)), expected)
    strided = np.repeat(IMAGES, 2, axis=2)[:, :, ::2]
    np.testing.assert_array_equal(made.render(strided, INDEX, seed=0, epoch=0, plan=ViewPlan(1, 1)), expected)


def test_mistakes_are_explained() -> None:
    made = engine()
    params = made.sample(INDEX, seed=0, epoch=0, plan=ViewPlan())
    with pytest.raises(DataError, match="3 images for the parameters of 7"):
        made.apply(IMAGES[:3], params)
    with pytest.raises(DataError, match=r"shape \(16, 12, 1\); give uint8 images of shape \(height, width, 3\)"):
        made.apply(IMAGES[..., :1], params)
    with pytest.raises(DataError, match="dtype float64"):
        made.plain(IMAGES / 255)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"contiguous float32 array of shape \(7, 16, 12, 3\)"):
        made.apply(IMAGES, params, out=np.empty((7, 3, 16, 12), np.float32))
    with pytest.raises(DataError, match="one mean and one std above 0 per channel"):
        ViewEngine(ViewConfig(), mean=(0.5,), std=(0.2,), size=(8, 8), channels=3)
