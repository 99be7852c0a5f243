"""Corruption by corruption: the kernel that makes it, and what the kernel needs besides images, keys and the result.

A kernel is called as kernel(images, keys, *arguments, out); the arguments follow from the image size (H, W) and from
the corruption's row of constants.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rte.evaluate.corruptions import kernels_blur as blur
from rte.evaluate.corruptions import kernels_digital as digital
from rte.evaluate.corruptions import kernels_noise as noise
from rte.evaluate.corruptions import kernels_weather as weather
from rte.evaluate.corruptions import pictures
from rte.evaluate.corruptions.constants import Row, is_small
from rte.evaluate.corruptions.filters import disk, gaussian_taps, outside, photon_table, search_guide, trail, zoom
from rte.evaluate.corruptions.frost import textures

Arguments = tuple[Any, ...]


class Site(NamedTuple):
    """What a recipe may look at besides its constants."""

    size: tuple[int, int]
    frost: Path | None = None


class Recipe(NamedTuple):
    """`arguments(site, row)` are those of `kernel` between the keys and the result."""

    kernel: Callable[..., None]
    arguments: Callable[[Site, Row], Arguments]


def _plain(site: Site, row: Row) -> Arguments:
    return row


def _shot_noise(site: Site, row: Row) -> Arguments:
    table = photon_table(int(row[0]))
    return table, search_guide(table)


def _gaussian_blur(site: Site, row: Row) -> Arguments:
    taps = gaussian_taps(row[0])
    return taps, *outside(site.size, len(taps) // 2, "edge")


def _glass_blur(site: Site, row: Row) -> Arguments:
    sigma, shift, passes = row
    return *_gaussian_blur(site, (sigma,)), int(shift), int(passes)


def _defocus_blur(site: Site, row: Row) -> Arguments:
    radius, smoothing = row
    weights, down, right, margin = disk(radius, smoothing)
    return weights, down, right, *outside(site.size, margin, "reflect")


def _motion_blur(site: Site, row: Row) -> Arguments:
    radius, sigma = row
    weights = trail(int(radius), sigma)
    return weights, *outside(site.size, len(weights) - 1, "edge")


def _zoom_blur(site: Site, row: Row) -> Arguments:
    stop, step = row
    # As published: by rounding, two of these ranges include their nominal stop.
    factors = np.arange(1.0, stop, step)
    return *zoom(site.size[0], factors), *zoom(site.size[1], factors)


def _snow(site: Site, row: Row) -> Arguments:
    mean, std, factor, threshold, radius, sigma, share = row
    zoomed = (part[0] for side in site.size for part in zoom(side, np.array([factor])))
    return mean, std, threshold, share, *zoomed, *_motion_blur(site, (radius, sigma))


def _frost(site: Site, row: Row) -> Arguments:
    ice = textures(site.frost, is_small(site.size))
    return *row, ice.pixels, ice.starts, ice.sizes


def _fog(site: Site, row: Row) -> Arguments:
    side = 1 << (max(site.size) - 1).bit_length()
    return *row, max(side, 2)


def _elastic_transform(site: Site, row: Row) -> Arguments:
    alpha, sigma, jitter = (share * min(site.size) for share in row)
    taps = gaussian_taps(sigma, truncate=3.0)
    return alpha, jitter, taps, *outside(site.size, len(taps) // 2, "symmetric")


def _jpeg_compression(site: Site, row: Row) -> Arguments:
    return (int(row[0]),)


RECIPES: dict[str, Recipe] = {
    "gaussian_noise": Recipe(noise.gaussian_noise, _plain),
    "shot_noise": Recipe(noise.shot_noise, _shot_noise),
    "impulse_noise": Recipe(noise.impulse_noise, _plain),
    "defocus_blur": Recipe(blur.defocus_blur, _defocus_blur),
    "glass_blur": Recipe(blur.glass_blur, _glass_blur),
    "motion_blur": Recipe(blur.motion_blur, _motion_blur),
    "zoom_blur": Recipe(blur.zoom_blur, _zoom_blur),
    "snow": Recipe(weather.snow, _snow),
    "frost": Recipe(weather.frost, _frost),
    "fog": Recipe(weather.fog, _fog),
    "brightness": Recipe(digital.brightness, _plain),
    "contrast": Recipe(digital.contrast, _plain),
    "elastic_transform": Recipe(digital.elastic_transform, _elastic_transform),
    "pixelate": Recipe(pictures.pixelate, _plain),
    "jpeg_compression": Recipe(pictures.jpeg_compression, _jpeg_compression),
    "speckle_noise": Recipe(noise.speckle_noise, _plain),
    "gaussian_blur": Recipe(blur.gaussian_blur, _gaussian_blur),
    "saturate": Recipe(digital.saturate, _plain),
}
