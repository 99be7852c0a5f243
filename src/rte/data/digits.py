"""scikit-learn's handwritten digits: 1,797 real 8 x 8 images that come with a dependency, so nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from rte.data.statistics import holdout
from rte.data.types import ArrayImages, Dataset, Pixels, Split
from rte.settings import Settings, setting

SUMMARY = "handwritten digits of scikit-learn, 8 x 8 grey, 10 classes, 1,297 + 500 images, nothing to download"
TEST = 500


class Config(Settings):
    """How the digits are drawn."""

    scale: int = setting(1, "enlarge the 8 x 8 images this many times, bilinear", ge=1, le=32)


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """The digits with values 0..255 and one fixed stratified split, whatever the seed of the run; needs no folder."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    images = ArrayImages(enlarge(pixels, cfg.scale)[..., None])
    y = digits.target.astype(np.int64)
    rows, held = holdout(y, TEST / len(y), seed=0)
    train, test = (Split(ArrayImages(images.pixels[part]), y[part]) for part in (rows, held))
    return Dataset("digits", tuple(str(digit) for digit in range(10)), train, test, y_true=y[rows])


def enlarge(pixels: Pixels, scale: int) -> Pixels:
    """Grey images (N, H, W) as (N, scale H, scale W)."""
    if scale == 1:
        return pixels
    size = (pixels.shape[2] * scale, pixels.shape[1] * scale)
    return np.stack([np.asarray(Image.fromarray(one).resize(size, Image.Resampling.BILINEAR)) for one in pixels])
