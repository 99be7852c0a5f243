"""`corrupt`: the same draws whatever the company, severities that rise, odd shapes, mistakes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_sample_image

from rte.errors import ConfigError, DataError
from rte.evaluate.corruptions import EXTRAS, NAMES, SEVERITIES, corrupt
from rte.evaluate.corruptions.pictures import jpeg_compression

ALL = NAMES + EXTRAS
RANDOM = tuple(
    sorted(
        set(ALL) - {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"} - set(EXTRAS)
    )
)


@cache
def photographs() -> NDArray[np.uint8]:
    """108 crops of two photographs, 32 x 32."""
    crops = []
    for name in ("china.jpg", "flower.jpg"):
        picture = np.asarray(Image.fromarray(load_sample_image(name)).resize((160, 107), Image.Resampling.BOX))
        crops += [picture[y : y + 32, x : x + 32] for y in range(0, 76, 15) for x in range(0, 129, 16)]
    return np.stack(crops)


def change(name: str) -> list[float]:
    clean = photographs()
    return [float(np.abs(corrupt(clean, name, s, seed=0).astype(int) - clean).mean()) for s in SEVERITIES]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"glass_blur", "frost", "elastic_transform"}))
def test_mean_pixel_change_rises_with_severity(name: str) -> None:
    changes = change(name)
    assert changes[0] > 1
    assert np.all(np.diff(changes) > 0), changes


def test_glass_blur_rises_with_passes_and_smoothness() -> None:
    """Its published constants raise sigma within equal passes, which smooths: pixels change no more, edges fade."""
    changes = change("glass_blur")
    assert min(changes[3:]) > 1.3 * max(changes[:3])
    edges = [
        np.abs(np.diff(corrupt(photographs(), "glass_blur", s, seed=0).astype(int), axis=1)).mean() for s in SEVERITIES
    ]
    assert edges[0] > edges[1] > edges[2]
    assert edges[3] > edges[4]


def test_frost_rises_against_the_image_it_covers() -> None:
    """From severity 3 on the image itself is darkened, so pixels change less: what rises is ice per image."""
    black, grey = (np.full((60, 32, 32, 3), value, np.uint8) for value in (0, 100))
    ratios = []
    for s in SEVERITIES:
        ice = corrupt(black, "frost", s, seed=0).astype(float)
        ratios.append(ice.mean() / (corrupt(grey, "frost", s, seed=0) - ice).mean())
    assert np.all(np.diff(ratios) > 0), ratios


def test_elastic_transform_bends_more_with_severity() -> None:
    """Its published constants trade the affine part for the bending part; a ramp shows how far it is from affine."""
    ramp = np.broadcast_to(np.arange(0, 256, 8)[None, :, None, None], (50, 32, 32, 1)).astype(np.uint8)
    y, x = np.mgrid[8:24, 8:24]
    basis = np.column_stack([x.ravel(), y.ravel(), np.ones(256)])
    bends = []
    for s in SEVERITIES:
        middle = corrupt(ramp, "elastic_transform", s, seed=0)[:, 8:24, 8:24, 0].reshape(50, 256).T.astype(float)
        bends.append(np.std(middle - basis @ np.linalg.lstsq(basis, middle, rcond=None)[0]))
    assert np.all(np.diff(bends) > 0), bends
    assert bends[0] < 0.5  # nothing but the cutting off to bytes


@pytest.mark.parametrize("name", ALL)
def test_an_image_does_not_depend_on_its_company(name: str) -> None:
    images = photographs()[:9]
    whole = corrupt(images, name, 4, seed=1)
    index = np.array([8, 2, 5])
    assert np.array_equal(corrupt(images[index], name, 4, seed=1, index=index), whole[index])
    assert np.array_equal(corrupt(images[4:], name, 4, seed=1, index=np.arange(4, 9)), whole[4:])
    assert np.array_equal(corrupt(images, name, 4, seed=1, threads=2), whole)
    assert np.array_equal(corrupt(images, name, 4, seed=1, threads=20), whole)


@pytest.mark.parametrize("name", RANDOM)
def test_seed_index_and_severity_each_change_the_draws(name: str) -> None:
    image = photographs()[40:41]
    twice = np.concatenate([image, image])
    first, second = corrupt(twice, name, 4, seed=1)
    assert not np.array_equal(first, second)
    assert not np.array_equal(corrupt(image, name, 4, seed=2)[0], first)
    assert np.array_equal(corrupt(image, name, 4, seed=1)[0], first)


def test_numpy_integers_are_integers() -> None:
    image = photographs()[:1]
    plain = corrupt(image, "snow", 2, seed=5)
    assert np.array_equal(corrupt(image, "snow", np.int64(2), seed=np.int64(5)), plain)  # type: ignore[arg-type]


def test_severities_do_not_share_their_noise() -> None:
    images = np.full((20, 32, 32, 1), 128, np.uint8)
    mild, strong = (corrupt(images, "gaussian_noise", s, seed=0).astype(float).ravel() for s in (1, 5))
    assert abs(np.corrcoef(mild, strong)[0, 1]) < 0.03


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "shape", [(2, 1, 1, 3), (1, 1, 1, 1), (2, 2, 3, 1), (2, 5, 9, 3), (1, 33, 31, 1), (0, 32, 32, 3)]
)
def test_any_shape(name: str, shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    before = images.copy()
    for severity in SEVERITIES:
        found = corrupt(images, name, severity, seed=0)
        assert found.shape == shape
        assert found.dtype == np.uint8
    assert np.array_equal(images, before)


@pytest.mark.parametrize("name", NAMES)
def test_large_images(name: str) -> None:
    picture = load_sample_image("flower.jpg")[None, :96, :128]
    for images in (picture, picture[..., :1]):
        found = corrupt(images, name, 3, seed=0)
        assert found.shape == images.shape
        assert np.abs(found.astype(int) - images).mean() > 0.5


def test_read_only_and_strided_images_are_fine() -> None:
    images = photographs()[:3].transpose(0, 2, 1, 3)
    frozen = np.ascontiguousarray(images)
    frozen.flags.writeable = False
    for name in ("gaussian_noise", "pixelate"):
        assert np.array_equal(corrupt(images, name, 2, seed=0), corrupt(frozen, name, 2, seed=0))


def test_black_images_stay_black_in_fog() -> None:
    assert corrupt(np.zeros((2, 8, 8, 3), np.uint8), "fog", 5, seed=0).max() == 0


def test_grey_jpeg_is_coded_as_grey() -> None:
    grey = photographs()[:2, ..., :1]
    out = np.empty_like(grey)
    jpeg_compression(grey, np.zeros(2, np.uint64), 100, out)
    assert np.abs(out.astype(int) - grey).max() <= 2


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 8, 8, 3)), "dtype float64 and shape \\(2, 8, 8, 3\\)"),
        (np.zeros((8, 8, 3), np.uint8), "shape \\(8, 8, 3\\); give uint8 images"),
        (np.zeros((2, 8, 8, 4), np.uint8), "shape \\(2, 8, 8, 4\\)"),
        (np.zeros((2, 0, 8, 3), np.uint8), "shape \\(2, 0, 8, 3\\)"),
    ],
)
def test_what_is_no_image(images: NDArray[np.uint8], words: str) -> None:
    with pytest.raises(DataError, match=words):
        corrupt(images, "fog", 1, seed=0)


def test_index_must_fit() -> None:
    with pytest.raises(DataError, match="index has shape \\(3,\\) for 2 images"):
        corrupt(np.zeros((2, 8, 8, 3), np.uint8), "fog", 1, seed=0, index=np.arange(3))


def test_names_and_severities_are_checked() -> None:
    with pytest.raises(ConfigError, match="no corruption 'rain'"):
        corrupt(photographs()[:1], "rain", 1, seed=0)
    with pytest.raises(ConfigError, match="severity 6"):
        corrupt(photographs()[:1], "snow", 6, seed=0)
