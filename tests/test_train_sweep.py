"""Outputs on a whole set of images, and predictions from mirror images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import quick
from torch import Tensor, nn

from rte.data.types import ArrayImages
from rte.run.build import load_dataset, make_trainer, prepare
from rte.run.predictor import Predictor
from rte.run.start import start
from rte.train.device import choose_device
from rte.train.sweep import outputs
from rte.views.loader import Loader


def test_mirror_is_the_mean_of_two_probabilities(tmp_path: Path) -> None:
    config = quick("rte", views={"mirror": True, "flip": False}, train={"epochs": 1})
    result = start(config, tmp_path / "run")
    predictor = Predictor.load(tmp_path / "run")
    data = load_dataset(config, None)
    assert data.test is not None
    found = predictor.probabilities(data.test.images)

    loader = Loader(data.test.images, data.test.y, predictor.spec.viewer(config), seed=0)
    x = next(loader.plain(len(data.test)))
    with torch.no_grad():
        p = [predictor.method.predict(view).double().softmax(1) for view in (x, x.flip(3))]
    np.testing.assert_allclose(found, ((p[0] + p[1]) / 2).numpy(), atol=1e-6)
    assert np.abs(found - p[0].numpy()).max() > 1e-3
    assert result["test"]["last"] == float((found.argmax(1) == data.test.y).mean())


def test_the_model_is_in_evaluation_mode_meanwhile() -> None:
    config = quick("ce")
    prepared = prepare(config, load_dataset(config, None))
    train = prepared.dataset.train
    model, modes = nn.Dropout(0.5), []

    def predict(x: Tensor) -> Tensor:
        modes.append(model.training)
        return x.flatten(1)[:, :3]

    loader = Loader(train.images, train.y, prepared.spec.viewer(config), seed=0)
    out = outputs(model, predict, loader, batch=500, device=choose_device("cpu"))
    assert out.shape == (len(train), 3)
    assert not any(modes)
    assert model.training


def test_an_evaluation_reads_every_test_image_once_for_all_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(quick("rte"), load_dataset(quick("rte"), None))
    made, examiner = make_trainer(prepared, save=lambda name, state: None)
    read: list[int] = []
    fetch = ArrayImages.fetch
    monkeypatch.setattr(ArrayImages, "fetch", lambda self, i: (read.extend(i.tolist()), fetch(self, i))[1])
    scores = examiner(made.method)
    assert set(scores) == {"test", "student"}
    assert prepared.dataset.test is not None
    assert sorted(read) == list(range(len(prepared.dataset.test)))


def test_an_evaluation_uses_the_threads_of_the_run() -> None:
    config = quick("ce", train={"threads": 3})
    _, examiner = make_trainer(prepare(config, load_dataset(config, None)), save=lambda name, state: None)
    assert examiner.threads == 3
