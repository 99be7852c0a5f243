"""RandAugment: each variant's arguments at a strength where they can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rte.views import randaugment
from rte.views.batch import ViewPlan
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.operations import Kind, outside
from rte.views.randaugment import VARIANTS
from rte.views.sampling import states

STATES = states(np.arange(4000), seed=0, epoch=0, stream=0)
ENHANCE = ("COLOR", "CONTRAST", "BRIGHTNESS", "SHARPNESS")
SIGNED = ("ROTATE", "SHEAR_X", "SHEAR_Y", "TRANSLATE_X", "TRANSLATE_Y")

EXPECTED = {  # (variant, magnitude): the argument of each kind, on images of 32 x 64
    ("randaugment-tpu", 7.0): {
        "AUTOCONTRAST": 0,
        "EQUALIZE": 0,
        "INVERT": 0,
        "POSTERIZE": 2,
        "SOLARIZE": 179,
        "SOLARIZE_ADD": 77,
        **dict.fromkeys(ENHANCE, 1.36),
        "ROTATE": 21,
        "SHEAR_X": 0.21,
        "SHEAR_Y": 0.21,
        "TRANSLATE_X": 70,
        "TRANSLATE_Y": 70,
        "CUTOUT": 56,
    },
    ("randaugment-ildoonet", 3.0): {
        "AUTOCONTRAST": 0,
        "EQUALIZE": 0,
        "INVERT": 0,
        "POSTERIZE": 1,
        "SOLARIZE": 25.6,
        "ADD_SOLARIZE": 11,
        **dict.fromkeys(ENHANCE, 0.28),
        "ROTATE": 3,
        "SHEAR_X": 0.03,
        "SHEAR_Y": 0.03,
        "TRANSLATE_X": 10,
        "TRANSLATE_Y": 10,
        "CUTOUT": 4,
    },
    ("randaugment-torchvision", 9.0): {
        "IDENTITY": 0,
        "AUTOCONTRAST": 0,
        "EQUALIZE": 0,
        "POSTERIZE": 7,
        "SOLARIZE": 178.5,
        "ROTATE": 9,
        "SHEAR_X": 0.09,
        "SHEAR_Y": 0.09,
        "TRANSLATE_X": 8,
        "TRANSLATE_Y": 4,
    },
}


def drawn(name: str, magnitude: float, num_ops: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return randaugment.draw(STATES, 1, VARIANTS[name], num_ops, magnitude, (32, 64))


@pytest.mark.parametrize(("name", "magnitude"), EXPECTED)
def test_arguments_are_those_of_the_source(name: str, magnitude: float) -> None:
    op, arg, mixing = drawn(name, magnitude)
    assert (mixing == [0, 1]).all()
    found = {Kind(kind).name: set(np.round(arg[op == kind, 0], 10)) for kind in np.unique(op)}
    expected = EXPECTED[name, magnitude]
    for kind, value in expected.items():
        assert found.pop(kind) == ({value, -value} if kind in SIGNED else {value}), kind
    rest = {kind: {0.73, 1.27} for kind in ENHANCE} if name == "randaugment-torchvision" else {}
    assert found == rest


@pytest.mark.parametrize(("name", "operations"), [("tpu", 16), ("ildoonet", 16), ("torchvision", 14)])
def test_every_operation_is_equally_likely(name: str, operations: int) -> None:
    op, _, _ = drawn(f"randaugment-{name}", 5.0)
    assert op.shape == (4000, 1, 1, 2)
    kinds, counts = np.unique(op, return_counts=True)
    assert len(kinds) == operations
    assert np.abs(counts * operations / op.size - 1).max() < 0.2


def test_fixmatch_draws_strengths_skips_half_and_ends_with_a_cutout() -> None:
    op, arg, _ = drawn("randaugment-fixmatch", 10.0)
    assert op.shape == (4000, 1, 1, 3)
    assert (op[..., -1] == Kind.CUTOUT).all()
    assert (arg[..., -1, 0] == 16).all()
    assert abs((op[..., :2] == Kind.IDENTITY).mean() - (0.5 + 0.5 / 14)) < 0.02
    first = {Kind(kind).name: set(np.round(arg[..., :2, :][op[..., :2] == kind][:, 0], 10)) for kind in np.unique(op)}
    assert first["ROTATE"] == {s * 3 * level for level in range(1, 10) for s in (-1, 1)}
    assert first["TRANSLATE_X"] == {s * level for level in range(1, 10) for s in (-1, 1)}
    assert first["POSTERIZE"] == {4, 3, 2, 1}
    assert first["SOLARIZE"] == {256 - int(25.6 * level) for level in range(1, 10)}
    assert first["COLOR"] == {round(0.1 + 0.18 * level, 10) for level in range(1, 10)}


def test_cutouts_lie_anywhere() -> None:
    _, arg, _ = drawn("randaugment-fixmatch", 10.0)
    spot = arg[..., -1, 1:].reshape(-1, 2)
    assert np.abs(np.sort(spot, 0) - np.linspace(0, 1, len(spot))[:, None]).max() < 0.03
    assert abs(np.corrcoef(spot.T)[0, 1]) < 0.06


def test_signs_are_even_and_do_not_decide_the_spot() -> None:
    op, arg, _ = drawn("randaugment-tpu", 5.0)
    turned = arg[op == Kind.ROTATE]
    assert abs((turned[:, 0] > 0).mean() - 0.5) < 0.07


def test_what_comes_from_outside_has_the_variants_colour() -> None:
    colour = {"tpu": 128, "ildoonet": 0, "fixmatch": 128, "torchvision": 0}
    for name, expected in colour.items():
        fill, nearest = outside(VARIANTS[f"randaugment-{name}"].rows, 3)
        assert (fill[Kind.ROTATE : Kind.CUTOUT] == expected).all()
        assert nearest[Kind.ROTATE : Kind.CUTOUT].all()
    assert outside(VARIANTS["randaugment-ildoonet"].rows, 3)[0][Kind.CUTOUT].tolist() == [125, 123, 114]


@pytest.mark.parametrize("side", [8, 32, 224])
def test_lengths_scaled_to_the_image_are_the_same_share_of_it(side: int) -> None:
    def lengths(name: str, at: int) -> dict[Kind, float]:
        op, arg, _ = randaugment.draw(STATES, 1, VARIANTS[name], 2, 10.0, (at, at))
        return {kind: float(np.abs(arg[op == kind, 0]).max()) for kind in (Kind.TRANSLATE_X, Kind.CUTOUT, Kind.ROTATE)}

    scaled, original = lengths("randaugment", side), lengths("randaugment-tpu", 224)
    assert scaled[Kind.TRANSLATE_X] == pytest.approx(original[Kind.TRANSLATE_X] * side / 224)
    assert scaled[Kind.CUTOUT] == 2 * np.trunc(40 * side / 224)
    assert scaled[Kind.ROTATE] == original[Kind.ROTATE] == 30


def test_scaled_views_of_small_images_still_show_the_image() -> None:
    images = np.random.default_rng(0).integers(0, 256, (400, 32, 32, 3), dtype=np.uint8)

    def flat(name: str) -> float:
        cfg = ViewConfig(strong=name)
        engine = ViewEngine(cfg, mean=(0.5,) * 3, std=(0.2,) * 3, size=(32, 32), channels=3)
        views = engine.render(images, np.arange(400), seed=0, epoch=0, plan=ViewPlan(1, 1))[400:]
        return float((views.reshape(400, -1).std(1) < 0.05).mean())

    assert flat("randaugment-tpu") > 0.2, "a third of the views is one colour"
    assert flat("randaugment") < 0.05
