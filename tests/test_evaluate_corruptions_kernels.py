"""Every corruption against a slow reference that makes the same draws, byte for byte."""

from __future__ import annotations

import numpy as np
import oracles_corruptions as slow
import pytest
from numpy.typing import NDArray

from rte.evaluate.corruptions import EXTRAS, NAMES, SEVERITIES, corrupt
from rte.evaluate.corruptions.constants import constants
from rte.evaluate.corruptions.frost import paint

INDEX = np.array([7, 123456])


def pictures(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Smooth colours with some grain, from black to white, a grey patch, and pixels of pure black."""
    n, height, width, channels = shape
    rng = np.random.default_rng(5)
    y, x, c = np.ogrid[0 : 3 : height * 1j, 0 : 2 : width * 1j, 0:channels]
    phase = rng.uniform(0, 6, (n, 1, 1, 1))
    waves = np.sin(2 * y + phase) + np.cos(3 * x * (1 + 0.2 * c) - y) + 0.4 * rng.standard_normal(shape)
    images = np.clip(127 + 75 * waves, 0, 255).astype(np.uint8)
    images[:, : height // 4, : width // 4] = images[:, : height // 4, : width // 4, :1]
    images[:, 0, 0] = 0
    return images


def reference(image: NDArray[np.uint8], name: str, severity: int, index: int) -> slow.Array:
    size = image.shape[0], image.shape[1]
    row = constants(name, severity, size)
    extra = [[paint(t, 1 if max(size) <= 64 else 5) for t in range(5)]] if name == "frost" else []
    draw = slow.draws(3, name, severity, index)
    values: slow.Array = getattr(slow, name)(image, draw, *row, *extra)
    return np.clip(values, 0, 255)


def same_bytes(found: NDArray[np.uint8], values: slow.Array) -> bool:
    """Whether `found` is `values` cut off; a value a hair's breadth below a whole number may go either way."""
    return bool(np.all((found <= values + 2e-6) & (found > values - 1)))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NAMES + EXTRAS)
def test_against_the_slow_reference(name: str, severity: int) -> None:
    for shape in ((2, 32, 32, 3), (2, 19, 26, 3), (2, 11, 8, 1)):
        images = pictures(shape)
        found = corrupt(images, name, severity, seed=3, index=INDEX)
        for image, made, index in zip(images, found, INDEX, strict=True):
            assert same_bytes(made, reference(image, name, severity, int(index))), shape


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("name", NAMES + EXTRAS)
def test_larger_images_against_the_slow_reference(name: str, severity: int) -> None:
    images = pictures((1, 40, 67, 3))
    found = corrupt(images, name, severity, seed=3, index=INDEX[:1])
    assert same_bytes(found[0], reference(images[0], name, severity, int(INDEX[0])))


def flat(value: int, number: int = 40) -> NDArray[np.uint8]:
    return np.full((number, 32, 32, 3), value, np.uint8)


@pytest.mark.parametrize(("severity", "sigma"), [(1, 0.04), (3, 0.08), (5, 0.10)])
def test_gaussian_noise_has_the_published_spread(severity: int, sigma: float) -> None:
    noise = corrupt(flat(128), "gaussian_noise", severity, seed=0).astype(float) + 0.5 - 128  # half: what is cut off
    assert abs(noise.mean()) < 0.3
    assert noise.std() == pytest.approx(255 * sigma, rel=0.02)
    across = np.corrcoef(noise.reshape(-1, 3).T)
    assert np.abs(across - np.eye(3)).max() < 0.02  # every channel has its own noise


@pytest.mark.parametrize("value", [20, 100, 200])
def test_shot_noise_has_the_variance_of_photons(value: int) -> None:
    noise = corrupt(flat(value), "shot_noise", 1, seed=0).astype(float) + 0.5
    assert noise.mean() == pytest.approx(value, abs=0.3)
    assert noise.std() == pytest.approx(255 * np.sqrt(value / 255 / 500), rel=0.03)


def test_shot_noise_leaves_black_alone_and_clips_white() -> None:
    assert corrupt(flat(0), "shot_noise", 5, seed=0).max() == 0
    white = corrupt(flat(255), "shot_noise", 5, seed=0)
    assert white.max() == 255
    assert np.mean(white == 255) == pytest.approx(0.54, abs=0.02)  # P(Poisson(50) >= 50)


@pytest.mark.parametrize(("severity", "share"), [(1, 0.01), (5, 0.07)])
def test_impulse_noise_replaces_the_published_share_half_and_half(severity: int, share: float) -> None:
    found = corrupt(flat(100), "impulse_noise", severity, seed=0)
    assert set(np.unique(found)) == {0, 100, 255}
    assert np.mean(found == 255) == pytest.approx(share / 2, rel=0.1)
    assert np.mean(found == 0) == pytest.approx(share / 2, rel=0.1)


@pytest.mark.parametrize(
    "name", ["defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "contrast"]
)
@pytest.mark.parametrize("value", [0, 77, 255])
def test_blurs_and_maps_keep_a_plain_image(name: str, value: int) -> None:
    for severity in SEVERITIES:
        assert np.all(corrupt(flat(value, 2), name, severity, seed=0) == value)


def test_brightness_of_a_plain_image() -> None:
    assert np.all(corrupt(flat(100, 1), "brightness", 2, seed=0) == 125)  # 100 + 25.5, cut off


def test_angles_of_motion_blur_spread_over_a_right_angle() -> None:
    """A white dot becomes a trail to its left, upwards as often as downwards."""
    images = np.zeros((400, 41, 41, 1), np.uint8)
    images[:, 20, 20] = 255
    trails = corrupt(images, "motion_blur", 5, seed=0)[..., 0].astype(float)
    rows = (trails.sum(2) @ np.arange(41)) / trails.sum((1, 2)) - 20
    cols = (trails.sum(1) @ np.arange(41)) / trails.sum((1, 2)) - 20
    assert cols.max() < -0.9
    angles = np.degrees(np.arctan2(-rows, -cols))
    assert np.abs(angles).max() < 50
    assert np.histogram(angles, 4, (-45, 45))[0].min() > 50
