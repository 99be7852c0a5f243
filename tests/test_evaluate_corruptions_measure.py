"""Errors per corruption and severity, and their mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rte.data.types import ArrayImages, Subset
from rte.errors import DataError
from rte.evaluate.corruptions import NAMES, SEVERITIES, Step, corrupt, evaluate_corruptions, mean_corruption_error
from rte.evaluate.corruptions import measure as measure_module

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (30, 8, 8, 3), np.uint8)
Y = RNG.integers(0, 4, 30)


def by_brightness(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """A classifier that corruptions confuse: the quarter in which the mean of the first rows lies."""
    return np.digitize(images[:, :2].mean((1, 2, 3)), [110, 127, 140])


def expected(name: str, severity: int, seed: int) -> float:
    return float(np.mean(by_brightness(corrupt(IMAGES, name, severity, seed=seed)) != Y))


def test_errors_are_those_of_the_corrupted_images() -> None:
    steps: list[Step] = []
    errors = evaluate_corruptions(by_brightness, IMAGES, Y, seed=3, threads=2, progress=steps.append)
    assert list(errors) == list(NAMES)
    assert errors == {name: [expected(name, s, 3) for s in SEVERITIES] for name in NAMES}
    assert len({error for row in errors.values() for error in row}) > 5
    assert [(step.name, step.severity) for step in steps] == [(name, s) for name in NAMES for s in SEVERITIES]
    assert [step.done for step in steps] == list(range(1, 76))
    assert {step.total for step in steps} == {75}
    assert steps[7].error == errors[NAMES[1]][2]


def test_blocks_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate_corruptions(by_brightness, IMAGES, Y, seed=0, names=["snow", "gaussian_noise"])
    sizes: list[int] = []

    def watching(images: NDArray[np.uint8]) -> NDArray[np.int64]:
        sizes.append(len(images))
        return by_brightness(images)

    monkeypatch.setattr(measure_module, "BLOCK", 8)
    rows = np.arange(29, -1, -1)
    images = Subset(ArrayImages(IMAGES[rows]), rows)  # the same images through another face
    assert evaluate_corruptions(watching, images, Y, seed=0, names=["snow", "gaussian_noise"]) == whole
    assert sizes == [8, 8, 8, 6] * 10


def test_published_files_take_the_place_of_made_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files hold the right answers at severity 1, and at each further severity six wrong ones more."""
    monkeypatch.setattr(measure_module, "BLOCK", 7)
    answers = np.concatenate([np.where(np.arange(30) < 6 * k, (Y + 1) % 4, Y) for k in range(5)])
    np.save(tmp_path / "fog.npy", np.broadcast_to(answers.astype(np.uint8)[:, None, None, None], (150, 2, 2, 3)))
    np.save(tmp_path / "labels.npy", np.tile(Y, 5))
    errors = evaluate_corruptions(lambda x: x[:, 0, 0, 0], IMAGES, Y, seed=0, official=tmp_path, names=["fog"])
    assert errors == {"fog": pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])}


def test_published_files_of_another_test_set_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "fog.npy", np.zeros((150, 2, 2, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.tile((Y + 1) % 4, 5))
    with pytest.raises(DataError, match=r"labels\.npy does not hold the 30 test labels"):
        evaluate_corruptions(by_brightness, IMAGES, Y, seed=0, official=tmp_path, names=["fog"])


def test_a_missing_published_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gaussian_noise\.npy does not exist"):
        evaluate_corruptions(by_brightness, IMAGES, Y, seed=0, official=tmp_path)


def test_labels_must_fit_the_images() -> None:
    with pytest.raises(DataError, match="30 images but 29 labels"):
        evaluate_corruptions(by_brightness, IMAGES, Y[1:], seed=0)
    with pytest.raises(DataError, match="0 images but 0 labels"):
        evaluate_corruptions(by_brightness, IMAGES[:0], Y[:0], seed=0)


def test_predictions_must_be_one_class_per_image() -> None:
    with pytest.raises(DataError, match=r"predictions have shape \(30, 4\) for 30 images"):
        evaluate_corruptions(lambda x: np.zeros((len(x), 4)), IMAGES, Y, seed=0)


def test_images_of_several_sizes_are_refused() -> None:
    class Mixed(ArrayImages):
        @property
        def size(self) -> None:
            return None

    with pytest.raises(DataError, match="differ in size; crop or resize"):
        evaluate_corruptions(by_brightness, Mixed(IMAGES), Y, seed=0)


def test_the_mean_is_plain() -> None:
    errors = {name: [k + 0.1 * s for s in range(5)] for k, name in enumerate(NAMES)}
    assert mean_corruption_error(errors) == pytest.approx(7.2)
    assert mean_corruption_error({**errors, "speckle_noise": [99.0] * 5}) == pytest.approx(7.2)


def test_a_mean_over_fewer_is_no_mce() -> None:
    errors = {name: [0.5] * 5 for name in NAMES}
    del errors["frost"]
    errors["fog"] = [0.5] * 4
    with pytest.raises(DataError, match="not so: frost, fog; evaluate these too"):
        mean_corruption_error(errors)


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "corruptions.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert names["foggy"].shape == names["x_test"].shape
    fog, mce = capsys.readouterr().out.splitlines()
    assert f'print(errors["fog"])  # {fog},' in example
    assert f"# {mce}\n" in example
