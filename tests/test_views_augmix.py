"""AugMix: the ranges of its operations, its mixing weights, and the class that stands alone."""

from __future__ import annotations

import numpy as np
import pytest

import rte
from rte.errors import ConfigError, DataError
from rte.views import augmix
from rte.views.augmix import AugMix
from rte.views.operations import Kind
from rte.views.sampling import states

STATES = states(np.arange(3000), seed=0, epoch=0, stream=0)


def values(kind: Kind, *, severity: float = 3.0, size: tuple[int, int] = (32, 32)) -> np.ndarray:
    op, arg, _ = augmix.draw(STATES, 2, width=3, severity=severity, depth=3, size=size)
    return arg[op == kind, 0]


def test_all_nine_operations_are_equally_likely() -> None:
    op, _, _ = augmix.draw(STATES, 2, width=3, severity=3.0, depth=3, size=(32, 32))
    kinds, counts = np.unique(op, return_counts=True)
    assert [Kind(kind).name for kind in kinds] == [
        *("AUTOCONTRAST", "EQUALIZE", "POSTERIZE", "SOLARIZE", "ROTATE"),
        *("SHEAR_X", "SHEAR_Y", "TRANSLATE_X", "TRANSLATE_Y"),
    ]
    assert np.abs(counts / op.size - 1 / 9).max() < 0.006


def test_ranges_at_severity_3_are_the_papers() -> None:
    bits = values(Kind.POSTERIZE)
    assert set(bits) == {3.0, 4.0}
    assert abs((bits == 3).mean() - 0.5 / 2.9) < 0.03
    assert set(values(Kind.ROTATE)) == set(range(-8, 9))
    assert set(values(Kind.SOLARIZE)) == set(range(180, 255))
    assert set(values(Kind.TRANSLATE_X)) == set(values(Kind.TRANSLATE_Y)) == set(range(-3, 4))
    for kind in (Kind.SHEAR_X, Kind.SHEAR_Y):
        shear = values(kind)
        assert 0.003 <= np.abs(shear).min() < 0.0035
        assert 0.0895 < np.abs(shear).max() <= 0.09
        assert abs((shear > 0).mean() - 0.5) < 0.03


def test_ranges_follow_severity_and_the_images_own_sides() -> None:
    assert set(values(Kind.POSTERIZE, severity=10.0)) == {1.0, 2.0, 3.0, 4.0}
    assert values(Kind.SOLARIZE, severity=10.0).min() == 1
    assert np.abs(values(Kind.ROTATE, severity=10.0)).max() == 29
    assert np.abs(values(Kind.TRANSLATE_X, size=(32, 224))).max() == 22
    assert np.abs(values(Kind.TRANSLATE_Y, size=(32, 224))).max() == 3


def test_chains_are_one_to_three_operations_long_or_as_long_as_asked() -> None:
    op, _, _ = augmix.draw(STATES, 2, width=3, severity=3.0, depth=-1, size=(32, 32))
    used = op != Kind.IDENTITY
    lengths = np.bincount(used.sum(-1).ravel(), minlength=4) / used[..., 0].size
    assert np.abs(lengths[1:] - 1 / 3).max() < 0.015
    assert (used[..., :-1] >= used[..., 1:]).all()
    fixed, _, _ = augmix.draw(STATES, 1, width=2, severity=3.0, depth=5, size=(32, 32))
    assert fixed.shape == (3000, 1, 2, 5)
    assert (fixed != Kind.IDENTITY).all()


def test_mixing_is_uniform_times_dirichlet() -> None:
    _, _, mixing = augmix.draw(STATES, 2, width=3, severity=3.0, depth=-1, size=(32, 32))
    np.testing.assert_allclose(mixing.sum(-1), 1, atol=1e-6)
    keep = mixing[..., 0].ravel()
    assert np.abs(np.sort(keep) - np.linspace(0, 1, keep.size)).max() < 0.025  # Kolmogorov-Smirnov
    share = (mixing[..., 1:] / (1 - mixing[..., :1])).reshape(-1, 3)
    assert np.abs(np.sort(share[:, 0]) - (1 - np.sqrt(1 - np.linspace(0, 1, keep.size)))).max() < 0.03  # Beta(1, 2)
    assert np.abs(share.mean(0) - 1 / 3).max() < 0.01
    assert abs(np.corrcoef(share[:, 0], share[:, 1])[0, 1] + 0.5) < 0.05
    assert abs(np.corrcoef(keep, share[:, 0])[0, 1]) < 0.05


IMAGES = np.random.default_rng(0).integers(0, 256, (6, 24, 20, 3), dtype=np.uint8)


def test_it_is_public_and_repeatable() -> None:
    mixed = rte.AugMix()(IMAGES, seed=5)
    assert mixed.dtype == np.float32
    assert mixed.shape == IMAGES.shape
    assert mixed.min() >= 0
    assert mixed.max() <= 255.001
    assert (np.abs(mixed - IMAGES).reshape(6, -1).max(1) > 1).all()
    assert np.abs(mixed - np.round(mixed)).max() > 0.3  # no second rounding
    np.testing.assert_array_equal(mixed, AugMix()(IMAGES, seed=5))
    assert (mixed != AugMix()(IMAGES, seed=6)).any()


def test_a_view_depends_on_its_index_and_not_on_its_neighbours() -> None:
    mixed = AugMix()(IMAGES, seed=5)
    np.testing.assert_array_equal(AugMix()(IMAGES[4], seed=5, index=[4]), mixed[4])
    np.testing.assert_array_equal(AugMix()(IMAGES[::-1], seed=5, index=np.arange(6)[::-1]), mixed[::-1])


def test_all_shapes_are_taken() -> None:
    grey = IMAGES[..., 0]
    mixed = AugMix()(grey, seed=1)
    assert mixed.shape == grey.shape
    np.testing.assert_array_equal(mixed, AugMix()(grey[..., None], seed=1)[..., 0])
    assert AugMix(width=1, severity=10, depth=2)(np.zeros((1, 1, 3), np.uint8), seed=0).tolist() == [[[0.0, 0.0, 0.0]]]
    frozen = IMAGES.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(AugMix()(frozen, seed=5), AugMix()(IMAGES, seed=5))


def test_mistakes_are_explained() -> None:
    with pytest.raises(DataError, match=r"float64.*give uint8 images"):
        AugMix()(IMAGES / 255, seed=0)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="6 images but 2 indices"):
        AugMix()(IMAGES, seed=0, index=[1, 2])
    for wrong in ({"width": 0}, {"severity": 11}, {"severity": 0.1}, {"depth": 0}):
        with pytest.raises(ConfigError, match="is not possible; give width >= 1"):
            AugMix(**wrong)
