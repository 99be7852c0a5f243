"""What is predicted from is what was evaluated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import quick
from photos import photo
from PIL import Image

from rte.errors import ConfigError
from rte.evaluate.examiner import Examiner
from rte.files import read_json
from rte.parts.robust_gaussian import linear_discriminant, robust_gaussians
from rte.run.build import load_dataset, prepare
from rte.run.folder import reopen
from rte.run.predictor import Predictor
from rte.run.start import start

SIZES = [(32, 32), (60, 40), (33, 90), (16, 16)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run on photographs of several sizes, which are reduced while they are read."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for part, copies in (("train", 3), ("test", 1)):
        for label in ("a", "b"):
            for k, size in enumerate(SIZES * copies):
                path = photo(root / part / label / f"{k}.png", size=size)
                Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)).save(path)
    data = {"name": "folder", "path": str(root), "shorter": 32}
    train = {"epochs": 1, "batch": 8, "threads": 2, "evaluate_batch": 3}
    start(quick("ce", data=data, noise={"name": "none", "ratio": 0.0}, train=train, views={"size": 32}), root / "run")
    return root


def test_evaluation_and_prediction_see_the_same_pixels_alone_and_in_company(run: Path) -> None:
    method, examiner = reopen(run / "run")
    assert isinstance(examiner, Examiner)
    assert (examiner.batch, examiner.threads) == (3, 2)
    test = examiner.dataset.test
    assert test is not None
    logits = examiner._logits(method, method.predict, test.images, test.y).astype(np.float64)
    expected = np.exp(logits - np.logaddexp.reduce(logits, 1)[:, None])
    predictor = Predictor.load(run / "run", device="cpu")

    def found(source: Path) -> np.ndarray:
        return predictor.probabilities(predictor.open(str(source)))

    np.testing.assert_allclose(found(run / "test"), expected, rtol=1e-5)
    alone = [found(run / "test" / label / f"{k}.png")[0] for label in "ab" for k in range(len(SIZES))]
    np.testing.assert_allclose(alone, expected, rtol=1e-5)
    assert read_json(run / "run" / "config.json")["data"]["shorter"] == 32


def test_features_are_what_the_last_layer_sees_and_rog_can_be_put_on_any_run(tmp_path: Path) -> None:
    """Fitted to the features of a finished run of cross-entropy, the Gaussians are those of a run of `rog`."""
    for name in ("ce", "rog", "co_teaching"):
        start(quick(name, train={"epochs": 1, "examples": 200, "batch": 50}), tmp_path / name)
    plain, ready, pair = (Predictor.load(tmp_path / name, device="cpu") for name in ("ce", "rog", "co_teaching"))
    prepared = prepare(plain.config, load_dataset(plain.config, None))
    train = prepared.dataset.train.take(prepared.train_rows)
    z = plain.features(train.images)
    logits = z @ plain.method.net.head.weight.detach().numpy().T + plain.method.net.head.bias.detach().numpy()
    expected = np.exp(logits - np.logaddexp.reduce(logits, 1)[:, None])
    np.testing.assert_allclose(plain.probabilities(train.images), expected, rtol=1e-3, atol=1e-6)

    weight, bias = linear_discriminant(robust_gaussians(torch.from_numpy(z), torch.from_numpy(train.y), 10))
    np.testing.assert_allclose(ready.method.weight, weight, rtol=1e-3, atol=1e-3 * float(weight.abs().max()))
    np.testing.assert_allclose(ready.method.bias, bias, rtol=1e-3)
    assert pair.features(train.images).shape == (200, 2 * z.shape[1])
    with pytest.raises(ConfigError, match="rog predicts without the last layer"):
        ready.features(train.images)
