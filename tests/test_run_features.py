"""Features are those of the network, whatever the batch; a file of them is taken once, and gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from test_nets_weights import random_state

from rte.data.types import ArrayImages
from rte.errors import DataError, UserError
from rte.run import features, kept
from rte.run.features import Extractor
from rte.run.kept import fingerprint

SIDE = 16


@pytest.fixture(scope="module")
def extractor(tmp_path_factory: pytest.TempPathFactory) -> Extractor:
    path = tmp_path_factory.mktemp("weights") / "mobile.pth"
    torch.save(random_state("mobilenet-v2"), path)
    return Extractor.open(str(path), size=SIDE, device="cpu")


@pytest.fixture(scope="module")
def images() -> ArrayImages:
    return ArrayImages(np.random.default_rng(0).integers(0, 256, (37, SIDE, SIDE, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def expected(extractor: Extractor, images: ArrayImages) -> np.ndarray:
    mean, std = (np.array(v) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    x = torch.from_numpy(((images.pixels / 255 - mean) / std).transpose(0, 3, 1, 2)).float()
    with torch.no_grad():
        return extractor.net.features(x).numpy()


def test_they_are_what_the_network_makes_of_normalised_images(
    extractor: Extractor, images: ArrayImages, expected: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    found = extractor(images, tell=lambda done, total: told.append((done, total)))
    assert (found.shape, found.dtype) == ((37, 1280), np.float32)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=1e-5 * scale)
    assert told == [(37, 37)]
    monkeypatch.setattr(features, "PIXELS", 8 * SIDE**2)
    np.testing.assert_allclose(extractor(images, threads=2), expected, atol=1e-5 * scale)
    mapped = extractor(images, tmp_path / "x.npy")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_allclose(mapped, expected, atol=1e-5 * scale)
    monkeypatch.setattr(kept, "SINGLE", 1)
    half = extractor(images, tmp_path / "half.npy")
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, expected, atol=1e-3 * scale)


def test_a_file_is_used_again_and_one_that_was_stopped_is_gone_on_with(
    extractor: Extractor, images: ArrayImages, expected: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, told = tmp_path / "new" / "x.npy", []
    monkeypatch.setattr(features, "PIXELS", 8 * SIDE**2)
    monkeypatch.setattr(kept, "SAVED", 0.0)

    def stop(done: int, total: int) -> None:
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extractor(images, file, tell=stop)
    assert not file.exists()
    found = extractor(images, file, tell=lambda done, total: told.append(done))
    assert told == [24, 32, 37], "the first 16 were there"
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    assert sorted(path.name for path in file.parent.glob("[!.]*")) == ["x.json", "x.npy"]
    told.clear()
    extractor(images, file, tell=lambda done, total: told.append(done))
    assert told == []
    other = ArrayImages(255 - images.pixels)
    extractor(other, file, tell=lambda done, total: told.append(done))
    assert told == [8, 16, 24, 32, 37], "of other images they are taken anew"


def test_examples_are_told_apart(images: ArrayImages) -> None:
    assert fingerprint(images) == fingerprint(ArrayImages(images.pixels.copy()))
    assert fingerprint(images) != fingerprint(images.take(np.arange(36)))
    assert fingerprint(images) != fingerprint(ArrayImages(images.pixels[::-1]))


def test_what_cannot_be(extractor: Extractor, images: ArrayImages, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the images have 1 channels, and the features are of 3; convert"):
        extractor(ArrayImages(images.pixels[..., :1].copy()))
    (tmp_path / "full").touch()
    with pytest.raises(UserError, match=r"cannot write .*x.npy \(.*\); free space or choose another folder"):
        extractor(images, tmp_path / "full" / "x.npy")
