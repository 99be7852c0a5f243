"""Every operation against Pillow, over random images and arguments; and chains against their operations one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rte.views import kernels
from rte.views.operations import Colour, Kind, Operation, luma
from tests.oracles import pillow_view

Bytes = NDArray[np.uint8]

LEVELS = st.integers(0, 256).map(float) | st.floats(-1.0, 257.0)
FACTORS = st.floats(-0.5, 2.5) | st.sampled_from([0.0, 1.0])
ARGUMENTS = {
    Kind.AUTOCONTRAST: st.just(0.0),
    Kind.EQUALIZE: st.just(0.0),
    Kind.INVERT: st.just(0.0),
    Kind.POSTERIZE: st.integers(1, 8).map(float),
    Kind.SOLARIZE: LEVELS,
    Kind.BRIGHTNESS: FACTORS,
    Kind.CONTRAST: FACTORS,
    Kind.COLOR: FACTORS,
    Kind.SHARPNESS: FACTORS,
}
GEOMETRY = {
    Kind.ROTATE: st.integers(-180, 180).map(float) | st.floats(-180.0, 180.0),
    Kind.SHEAR_X: st.floats(-0.4, 0.4) | st.sampled_from([0.25, -0.5, 1.0]),
    Kind.SHEAR_Y: st.floats(-0.4, 0.4) | st.sampled_from([0.25, -0.5, 1.0]),
    Kind.TRANSLATE_X: st.integers(-45, 45).map(float),
    Kind.TRANSLATE_Y: st.integers(-45, 45).map(float),
}
COLOURS = st.sampled_from([(0, 0, 0), (128, 128, 128), (125, 123, 114)])
BRIEF = settings(max_examples=60, deadline=None)


@st.composite
def images(draw: st.DrawFn) -> Bytes:
    """Noise, gradients, flat images and few-valued ones, of any shape from 1 x 1 on."""
    shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pattern = draw(st.sampled_from(["noise", "gradient", "flat", "few", "narrow"]))
    if pattern == "gradient":
        slope = rng.uniform(-12, 12, (2, shape[2]))
        y, x = np.indices(shape[:2])[..., None]
        return np.clip(128 + slope[0] * y + slope[1] * x, 0, 255).astype(np.uint8)
    if pattern == "flat":
        return np.full(shape, rng.integers(0, 256), np.uint8)
    low, high = {"noise": (0, 256), "few": (0, 2), "narrow": (90, 140)}[pattern]
    scale = 255 if pattern == "few" else 1
    return (rng.integers(low, high, shape) * scale).astype(np.uint8)


def run(
    image: Bytes, ops: list[tuple[Kind, float]], fill: Colour = (0, 0, 0), nearest: bool = False
) -> NDArray[np.float32]:
    """The chain's result in 0..255."""
    op = np.array([kind for kind, _ in ops], np.int8).reshape(1, 1, 1, -1)
    arg = np.zeros((*op.shape, 3))
    arg[0, 0, 0, :, 0] = [value for _, value in ops]
    arg[..., 1:] = 0.3, 0.8
    table = [Operation(kind, fill=fill, nearest=nearest) for kind in Kind]
    out = np.full((1, 1, *image.shape), np.nan, np.float32)
    mixing = np.array([[[0.0, 1.0]]], np.float32)
    kernels.strong(image[None], op, arg, mixing, table, kernels.raw(*image.shape[1:]), out)
    return out[0, 0]


@pytest.mark.parametrize("kind", ARGUMENTS, ids=lambda kind: kind.name)
def test_values_are_pillows_to_the_byte(kind: Kind) -> None:
    @BRIEF
    @given(images(), ARGUMENTS[kind])
    def check(image: Bytes, value: float) -> None:
        np.testing.assert_array_equal(
            run(image, [(kind, value)]), pillow_view(image, kind.name, value, (0, 0, 0), False)
        )

    check()


@pytest.mark.parametrize("kind", GEOMETRY, ids=lambda kind: kind.name)
def test_bilinear_geometry_is_within_one_level_of_pillow(kind: Kind) -> None:
    @BRIEF
    @given(images(), GEOMETRY[kind], COLOURS)
    def check(image: Bytes, value: float, fill: Colour) -> None:
        error = np.abs(run(image, [(kind, value)], fill) - pillow_view(image, kind.name, value, fill, False))
        assert error.max() <= 1

    check()


@pytest.mark.parametrize("kind", GEOMETRY, ids=lambda kind: kind.name)
def test_nearest_geometry_is_pillows_to_the_byte(kind: Kind) -> None:
    @BRIEF
    @given(images(), GEOMETRY[kind], COLOURS)
    def check(image: Bytes, value: float, fill: Colour) -> None:
        expected = pillow_view(image, kind.name, value, fill, True)
        np.testing.assert_array_equal(run(image, [(kind, value)], fill, nearest=True), expected)

    check()


@pytest.mark.parametrize("size", [(32, 32), (33, 20), (7, 48), (1, 5)])
def test_borders_are_pillows_where_samples_fall_exactly_on_them(size: tuple[int, int]) -> None:
    """Whole degrees and round slopes put samples on the very edge; noise on a white ground shows any wrong decision."""
    image = np.random.default_rng(3).integers(0, 100, (*size, 1), dtype=np.uint8)
    white = (255, 255, 255)
    cases = [(Kind.ROTATE, float(degrees)) for degrees in range(-180, 181)]
    cases += [(kind, k / 64) for kind in (Kind.SHEAR_X, Kind.SHEAR_Y) for k in range(-80, 81)]
    for kind, value in cases:
        expected = pillow_view(image, kind.name, value, white, False)
        assert np.abs(run(image, [(kind, value)], white) - expected).max() <= 1, (kind.name, value)


def test_bilinear_geometry_almost_always_is_pillows_to_the_byte() -> None:
    image = np.random.default_rng(0).integers(0, 256, (96, 80, 3), dtype=np.uint8)
    for kind, value in ((Kind.ROTATE, 7.0), (Kind.SHEAR_X, 0.083), (Kind.SHEAR_Y, -0.071)):
        same = run(image, [(kind, value)]) == pillow_view(image, kind.name, value, (0, 0, 0), False)
        assert same.mean() > 0.99


def test_geometry_leaves_flat_images_flat_inside() -> None:
    image = np.full((32, 32, 3), 200, np.uint8)
    for kind, value in ((Kind.ROTATE, 5.0), (Kind.SHEAR_X, 0.05), (Kind.SHEAR_Y, 0.05)):
        assert set(np.unique(run(image, [(kind, value)]))) <= {0.0, 200.0}


def test_translations_of_no_whole_pixels_are_rounded_as_pillows_nearest() -> None:
    image = np.random.default_rng(1).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    for value in (9.7, -9.7, 3.5, -0.49, 0.51):
        expected = pillow_view(image, "TRANSLATE_X", value, (0, 0, 0), True)
        np.testing.assert_array_equal(run(image, [(Kind.TRANSLATE_X, value)], nearest=True), expected)


def test_solarize_add_adds_below_128_or_everywhere_and_turns() -> None:
    image = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    values = np.arange(256.0).reshape(16, 16, 1)
    below = np.where(values < 128, values + 11, values)
    np.testing.assert_array_equal(run(image, [(Kind.SOLARIZE_ADD, 11.0)]), below)
    raised = np.minimum(values + 11, 255)
    np.testing.assert_array_equal(
        run(image, [(Kind.ADD_SOLARIZE, 11.0)]), np.where(raised >= 128, 255 - raised, raised)
    )


def test_posterize_to_no_bits_is_black() -> None:
    image = np.random.default_rng(2).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert run(image, [(Kind.POSTERIZE, 0.0)]).max() == 0


def test_cutout_paints_a_square_cut_off_at_the_border() -> None:
    image = np.full((20, 10, 3), 7, np.uint8)
    expected = image.astype(float)
    expected[3:9, 5:10] = 125, 123, 114  # centre at (0.3 * 20, 0.8 * 10), side 6
    np.testing.assert_array_equal(run(image, [(Kind.CUTOUT, 6.0)], fill=(125, 123, 114)), expected)


def test_the_fill_of_grey_images_is_the_colours_luma() -> None:
    assert luma((125, 123, 114)) == 123
    image = np.zeros((4, 4, 1), np.uint8)
    assert run(image, [(Kind.TRANSLATE_X, 4.0)], fill=(125, 123, 114)).tolist() == np.full((4, 4, 1), 123).tolist()


ANY = {**ARGUMENTS, **GEOMETRY, Kind.IDENTITY: st.just(0.0), Kind.SOLARIZE_ADD: st.integers(0, 110).map(float)}
STEPS = st.sampled_from(sorted(ANY)).flatmap(lambda kind: st.tuples(st.just(kind), ANY[kind]))


@settings(max_examples=300, deadline=None)
@given(images(), st.lists(STEPS, min_size=1, max_size=6))
def test_a_chain_is_its_operations_one_after_the_other(image: Bytes, ops: list[tuple[Kind, float]]) -> None:
    expected = image
    for step in ops:
        expected = run(expected, [step]).astype(np.uint8)
    np.testing.assert_array_equal(run(image, ops), expected)


@settings(max_examples=60, deadline=None)
@given(images(), st.lists(st.lists(STEPS, min_size=2, max_size=2), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_chains_are_mixed_with_each_other_and_the_image(
    image: Bytes, chains: list[list[tuple[Kind, float]]], seed: int
) -> None:
    share = np.random.default_rng(seed).dirichlet(np.ones(len(chains) + 1))
    op = np.array([[kind for kind, _ in chain] for chain in chains], np.int8)[None, None]
    arg = np.zeros((*op.shape, 3))
    arg[0, 0, :, :, 0] = [[value for _, value in chain] for chain in chains]
    scale, bias = np.array([0.5, 2.0, 3.0])[: image.shape[2]], np.array([1.0, -4.0, 0.0])[: image.shape[2]]
    finish = kernels.Scaling(*(np.tile(part, image.shape[1]).astype(np.float32) for part in (scale, bias)))
    out = np.empty((1, 1, *image.shape), np.float32)
    kernels.strong(image[None], op, arg, share[None, None].astype(np.float32), [], finish, out)
    mixture = share[0] * image + sum(
        k * run(image, chain).astype(float) for k, chain in zip(share[1:], chains, strict=True)
    )
    np.testing.assert_allclose(out[0, 0], mixture * scale + bias, rtol=0, atol=2e-3)
