"""The table of constants against the published numbers, and mistakes in names and severities."""

from __future__ import annotations

import numpy as np
import pytest

from rte.errors import ConfigError
from rte.evaluate.corruptions import EXTRAS, NAMES, SEVERITIES
from rte.evaluate.corruptions.constants import SCORED, UNSCORED, constants
from rte.evaluate.corruptions.recipes import RECIPES

CIFAR, IMAGENET = (32, 32), (224, 224)


def test_the_fifteen_scored_corruptions_in_the_order_of_the_papers_tables() -> None:
    noise_and_blur = "gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur"
    weather_and_digital = "snow frost fog brightness contrast elastic_transform pixelate jpeg_compression"
    assert list(NAMES) == f"{noise_and_blur} {weather_and_digital}".split()
    assert SEVERITIES == (1, 2, 3, 4, 5)
    assert set(RECIPES) == set(NAMES) | set(EXTRAS)


def test_every_row_has_one_number_per_column() -> None:
    for name, entry in {**SCORED, **UNSCORED}.items():
        for rows in (entry.small, entry.large):
            assert len(rows) == 5
            assert {len(row) for row in rows} == {len(entry.columns)}, name


@pytest.mark.parametrize(
    ("name", "severity", "row"),
    [
        ("gaussian_noise", 4, (0.09,)),
        ("shot_noise", 1, (500,)),
        ("shot_noise", 5, (50,)),
        ("impulse_noise", 3, (0.03,)),
        ("defocus_blur", 4, (1, 0.2)),
        ("glass_blur", 1, (0.05, 1, 1)),
        ("glass_blur", 5, (0.4, 1, 2)),
        ("motion_blur", 5, (9, 2.5)),
        ("zoom_blur", 3, (1.16, 0.01)),
        ("snow", 3, (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9)),
        ("snow", 5, (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8)),
        ("frost", 4, (0.85, 0.4)),
        ("fog", 5, (1.5, 1.75)),
        ("brightness", 5, (0.3,)),
        ("contrast", 1, (0.75,)),
        ("elastic_transform", 1, (0, 0, 0.08)),
        ("elastic_transform", 4, (0.1, 0.04, 0.05)),
        ("pixelate", 2, (0.9,)),
        ("jpeg_compression", 3, (58,)),
        ("speckle_noise", 5, (0.2,)),
        ("gaussian_blur", 2, (0.6,)),
        ("saturate", 4, (2, 0.1)),
    ],
)
def test_cifar_constants(name: str, severity: int, row: tuple[float, ...]) -> None:
    assert constants(name, severity, CIFAR) == row
    assert constants(name, severity, (64, 20)) == row


@pytest.mark.parametrize(
    ("name", "severity", "row"),
    [
        ("gaussian_noise", 5, (0.38,)),
        ("shot_noise", 4, (5,)),
        ("defocus_blur", 5, (10, 0.5)),
        ("glass_blur", 3, (1, 2, 3)),
        ("snow", 4, (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65)),
        ("frost", 3, (0.7, 0.7)),
        ("fog", 2, (2, 2)),
        ("contrast", 5, (0.05,)),
        ("jpeg_compression", 5, (7,)),
    ],
)
def test_larger_images_get_the_imagenet_constants(name: str, severity: int, row: tuple[float, ...]) -> None:
    assert constants(name, severity, IMAGENET) == row
    assert constants(name, severity, (20, 65)) == row


def test_elastic_constants_in_pixels() -> None:
    assert np.multiply(constants("elastic_transform", 2, CIFAR), 32) == pytest.approx([1.6, 6.4, 2.24])
    assert np.multiply(constants("elastic_transform", 1, IMAGENET), 224) == pytest.approx([488, 170.8, 24.4])


def test_zoom_ranges_hold_the_published_number_of_factors() -> None:
    assert [len(np.arange(1, *constants("zoom_blur", s, CIFAR))) for s in SEVERITIES] == [7, 12, 16, 21, 26]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no corruption 'gausian_noise'; did you mean 'gaussian_noise'"):
        constants("gausian_noise", 1, CIFAR)


@pytest.mark.parametrize("severity", [0, 6, -1])
def test_severities_end_at_one_and_five(severity: int) -> None:
    with pytest.raises(ConfigError, match=f"severity {severity} of fog does not exist; choose 1"):
        constants("fog", severity, CIFAR)
