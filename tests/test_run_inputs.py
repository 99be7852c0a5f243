"""What a run says of its data, and runs on vectors from start to end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rte.config import resolve
from rte.data.types import ArrayImages, ArrayVectors
from rte.errors import ConfigError, DataError
from rte.files import read_json
from rte.run.build import load_dataset, prepare
from rte.run.inputs import ImageSpec, VectorSpec, from_json
from rte.run.predictor import Predictor
from rte.run.start import resume, start
from rte.train.trainer import Interrupted


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """scikit-learn's digits as vectors of 64 numbers."""
    x, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("vectors") / "digits.npz"
    np.savez(path, x_train=x[:1297], y_train=y[:1297], x_test=x[1297:], y_test=y[1297:])
    return path


def config(vectors: Path, method: str = "rte", **train: Any) -> Any:
    return resolve(
        "vectors",
        {
            "data": {"name": "vectors", "path": str(vectors)},
            "method": {"name": method},
            "noise": {"name": "symmetric", "ratio": 0.4},
            "train": {"epochs": 3, "device": "cpu", **train},
        },
    )


def test_input_json_is_read_as_it_was_written(vectors: Path) -> None:
    found = prepare(config(vectors), load_dataset(config(vectors), None)).spec
    assert isinstance(found, VectorSpec)
    assert (found.dim, found.n, found.channels, found.size) == (64, 1297, 64, ())
    assert from_json(asdict(found)) == found
    images = ImageSpec(("a", "b"), 1, (8, 8), (0.5,), (0.2,), 10)
    assert from_json({**asdict(images), "size": [8, 8], "classes": ["a", "b"], "mean": [0.5], "std": [0.2]}) == images


@pytest.mark.parametrize("method", ["ce", "rte", "auto"])
def test_methods_train_on_vectors_predict_and_are_loaded_again(method: str, vectors: Path, tmp_path: Path) -> None:
    run = config(vectors, method, epochs=8)
    result = start(run, tmp_path / "run")
    assert result["test"]["last"] > 0.7
    predictor = Predictor.load(tmp_path / "run")
    data = load_dataset(run, None)
    assert data.test is not None
    probs = predictor.probabilities(data.test.images)
    assert (probs.argmax(1) == data.test.y).mean() == pytest.approx(result["test"]["last"])
    with pytest.raises(DataError, match="the vectors have 63 numbers, the model was trained on 64"):
        predictor.probabilities(ArrayVectors(np.zeros((2, 63))))
    with pytest.raises(DataError, match="vectors are needed"):
        predictor.probabilities(ArrayImages(np.zeros((2, 8, 8, 1), np.uint8)))


class Stop:
    def __init__(self, step: int) -> None:
        self.left = step

    def step(self, t: Any, terms: Any) -> None:
        self.left -= 1
        if not self.left:
            raise Interrupted("a test")

    def epoch(self, epoch: int, scores: Any) -> None: ...


def test_a_killed_run_on_vectors_goes_on_bit_for_bit(vectors: Path, tmp_path: Path) -> None:
    whole = start(config(vectors), tmp_path / "whole")
    with pytest.raises(Interrupted):
        start(config(vectors), tmp_path / "killed", observer=Stop(14))
    again = resume(tmp_path / "killed")
    assert again["test"] == whole["test"]
    assert read_json(tmp_path / "killed" / "input.json") == read_json(tmp_path / "whole" / "input.json")


@pytest.mark.parametrize(("dim", "name"), [(16, "mlp-128"), (384, "linear")])
def test_the_network_suits_the_length_of_the_vectors_and_is_recorded(dim: int, name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "set.npz", x_train=rng.normal(size=(600, dim)), y_train=np.arange(600) % 3)
    run = config(tmp_path / "set.npz", "ce", epochs=1)
    assert run.net.name == "auto"
    start(run, tmp_path / "run")
    assert read_json(tmp_path / "run" / "config.json")["net"]["name"] == name


def test_images_need_a_network_by_name() -> None:
    run = resolve("digits", {"net": {"name": "auto"}})
    with pytest.raises(ConfigError, match=r"net\.name = auto chooses a network for vectors; name one for images"):
        prepare(run, load_dataset(run, None))
