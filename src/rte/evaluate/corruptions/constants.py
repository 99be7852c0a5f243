"""How strong each corruption is: the published constants of CIFAR-10-C and ImageNet-C, severities 1 to 5, in one table.

Source: the programs that made the two published sets of Hendrycks and Dietterich, "Benchmarking Neural Network
Robustness to Common Corruptions and Perturbations" (2019). CIFAR-10-C is gentler; the two are never mixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rte.errors import ConfigError, did_you_mean

SMALL = 64
"""Images whose longer side is at most this get the constants of CIFAR-10-C, larger ones those of ImageNet-C."""

SEVERITIES = (1, 2, 3, 4, 5)

Row = tuple[float, ...]
Rows = tuple[Row, Row, Row, Row, Row]


@dataclass(frozen=True)
class Constants:
    """One corruption: what its numbers mean, and the numbers by severity for small and for large images."""

    columns: tuple[str, ...]
    small: Rows
    large: Rows


# The script for ImageNet-C writes 244 for a side of 224; the published set was made with it.
SLIP = 244 / 224

SCORED: dict[str, Constants] = {
    "gaussian_noise": Constants(
        ("sigma",),
        ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
        ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    ),
    "shot_noise": Constants(
        ("photons of full brightness",),
        ((500,), (250,), (100,), (75,), (50,)),
        ((60,), (25,), (12,), (5,), (3,)),
    ),
    "impulse_noise": Constants(
        ("share replaced",),
        ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
        ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    ),
    "defocus_blur": Constants(
        ("radius", "smoothing of the disk"),
        ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    ),
    "glass_blur": Constants(
        ("sigma", "largest shift", "passes"),
        ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    ),
    "motion_blur": Constants(
        ("radius", "sigma"),
        ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    ),
    "zoom_blur": Constants(
        ("stop", "step"),
        ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    ),
    "snow": Constants(
        ("mean", "std", "zoom", "threshold", "radius", "sigma", "share of the image"),
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    ),
    "frost": Constants(
        ("weight of the image", "weight of the frost"),
        ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
        ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    ),
    "fog": Constants(
        ("amount", "decay"),
        ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    ),
    "brightness": Constants(
        ("added to the value",),
        ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
        ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    ),
    "contrast": Constants(
        ("factor",),
        ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
        ((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    ),
    "elastic_transform": Constants(
        ("alpha", "sigma", "jitter"),  # all as shares of the shorter side
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
        (
            (SLIP * 2, SLIP * 0.7, SLIP * 0.1),
            (SLIP * 2, SLIP * 0.08, SLIP * 0.2),
            (SLIP * 0.05, SLIP * 0.01, SLIP * 0.02),
            (SLIP * 0.07, SLIP * 0.01, SLIP * 0.02),
            (SLIP * 0.12, SLIP * 0.01, SLIP * 0.02),
        ),
    ),
    "pixelate": Constants(
        ("scale",),
        ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
        ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
    ),
    "jpeg_compression": Constants(
        ("quality",),
        ((80,), (65,), (58,), (50,), (40,)),
        ((25,), (18,), (15,), (10,), (7,)),
    ),
}

UNSCORED: dict[str, Constants] = {
    "speckle_noise": Constants(
        ("sigma",),
        ((0.06,), (0.1,), (0.12,), (0.16,), (0.2,)),
        ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)),
    ),
    "gaussian_blur": Constants(
        ("sigma",),
        ((0.4,), (0.6,), (0.7,), (0.8,), (1,)),
        ((1,), (2,), (3,), (4,), (6,)),
    ),
    "saturate": Constants(
        ("gain", "offset"),
        ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    ),
}

NAMES = tuple(SCORED)
"""The 15 corruptions that the mean corruption error is the mean of."""

EXTRAS = tuple(UNSCORED)
"""Further ones that are not scored, for choosing settings without looking at the scored ones."""


def constants(name: str, severity: int, size: tuple[int, int]) -> Row:
    """The numbers of one corruption for images of `size` (H, W)."""
    check(name, severity)
    entry = SCORED[name] if name in SCORED else UNSCORED[name]
    rows = entry.small if is_small(size) else entry.large
    return tuple(float(number) for number in rows[severity - 1])


def is_small(size: tuple[int, int]) -> bool:
    """Whether images of this size are treated as CIFAR-10-C treats its own."""
    return max(size) <= SMALL


def check(name: str, severity: int, known: tuple[str, ...] = NAMES + EXTRAS) -> None:
    """Raises a ConfigError unless this corruption exists at this severity."""
    if name not in known:
        raise ConfigError(f"there is no corruption '{name}'; {did_you_mean(name, known)}")
    if severity not in SEVERITIES:
        raise ConfigError(f"severity {severity} of {name} does not exist; choose 1 (mild) to 5 (strong).")
