"""Runs that see their images once: what learns, what is kept, and that images are predicted as they were evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick
from test_nets_weights import random_state

from rte.config import RunConfig
from rte.data.types import ArrayImages, Embedded
from rte.errors import CheckpointError
from rte.files import read_json
from rte.nets import weights
from rte.run import features
from rte.run.build import load_dataset, prepare
from rte.run.folder import reopen
from rte.run.frozen import Keep
from rte.run.inputs import FeatureSpec, from_json
from rte.run.predictor import Predictor
from rte.run.start import start


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "mobile.pth"
    torch.save(random_state("mobilenet-v2"), path)
    return path


def config(file: Path, **views: Any) -> RunConfig:
    train = {"epochs": 2, "examples": 80, "batch": 16, "holdout": 0.25, "optimizer": "adam"}
    net = {"init": str(file), "train": "frozen"}
    return quick("ce", train=train, net=net, views={"size": 16, **views})


@pytest.mark.parametrize("mirror", [False, True])
def test_images_are_predicted_as_their_features_were_evaluated_without_the_file(
    file: Path, tmp_path: Path, mirror: bool
) -> None:
    path = tmp_path / "w.pth"
    path.write_bytes(file.read_bytes())
    start(config(path, mirror=mirror), tmp_path / "run")
    path.unlink()
    weights.read.cache_clear()
    method, examiner = reopen(tmp_path / "run")
    held = examiner.dataset.train.take(examiner.val_rows)
    assert isinstance(held.images, Embedded)
    logits = torch.from_numpy(examiner._logits(method, method.predict, held.images, held.y))
    rows = np.arange(len(held))
    pixels = held.images.images.fetch(rows)
    found = Predictor.load(tmp_path / "run", device="cpu").probabilities(ArrayImages(np.asarray(pixels)))
    np.testing.assert_allclose(found, logits.double().softmax(1), rtol=1e-3, atol=1e-5)


def test_features_are_taken_once_for_all_runs_that_stand_side_by_side(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    start(config(file), tmp_path / "one", tell=lambda done, total: told.append((done, total)))
    digits = load_dataset(config(file), None)
    assert digits.test is not None
    assert {total for _, total in told} == {80, len(digits.test)}

    def never(self: features.Extractor, *given: Any) -> None:
        raise AssertionError("taken again")

    monkeypatch.setattr(features.Extractor, "_blocks", never)
    start(config(file).with_train(epochs=1), tmp_path / "two")
    assert sorted(path.suffix for path in (tmp_path / "features").iterdir() if path.suffix != ".lock") == [
        ".json", ".json", ".npy", ".npy"
    ]  # fmt: skip


def test_a_linear_layer_learns_and_the_data_keeps_its_names(file: Path, tmp_path: Path) -> None:
    prepared = prepare(config(file), load_dataset(config(file), None), Keep(tmp_path))
    spec = prepared.spec
    assert isinstance(spec, FeatureSpec)
    assert (spec.vectors.dim, spec.channels, spec.size, spec.n) == (1280, 1, (16, 16), 60)
    assert prepared.dataset.train.images.label(3).startswith("image ")
    result = start(config(file), tmp_path / "run")
    assert result["parameters"] == 1280 * 10 + 10
    assert from_json(read_json(tmp_path / "run" / "input.json")) == spec


def test_a_budget_ends_a_head_by_epochs_where_there_is_time(file: Path, tmp_path: Path) -> None:
    result = start(config(file), tmp_path / "run", budget=3600.0)
    assert result["epochs"] == 2
    assert not (tmp_path / "run" / "clock.jsonl").exists()


def test_features_that_took_all_of_the_time_are_used_none_the_less(file: Path, tmp_path: Path) -> None:
    assert start(config(file), tmp_path / "run", budget=0.001)["epochs"] == 2


def test_a_damaged_network_is_named(file: Path, tmp_path: Path) -> None:
    start(config(file), tmp_path / "run")
    (tmp_path / "run" / "backbone.safetensors").write_bytes(b"no")
    with pytest.raises(CheckpointError, match=r"backbone.safetensors cannot be read"):
        Predictor.load(tmp_path / "run", device="cpu")
