"""`rte embed`: vectors with labels for `rte fit`, or vectors alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from test_nets_weights import random_state

from rte.cli.embed import embed
from rte.data.vectors import Config, load
from rte.errors import DataError, UserError
from rte.files import read_json
from rte.run import sentences
from rte.run.embedding import Look, embed_data, embed_examples
from rte.run.features import Extractor
from rte.run.sentences import Encoder

DIM = 3


class Letters(torch.nn.Module):
    """A text as how often it has a, b and c."""

    def encode(self, texts: list[str], **how: object) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)


@pytest.fixture
def weights(tmp_path: Path) -> str:
    path = tmp_path / "mobile.pth"
    torch.save(random_state("mobilenet-v2"), path)
    return str(path)


@pytest.fixture
def _letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_opened", lambda name, device: Encoder(Letters(), name, DIM, {"model": "letters"}))


def test_images_with_labels(weights: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), dtype=np.uint8)
    names = np.array(["cat", "dog"] * 10)
    np.savez(tmp_path / "set.npz", x_train=x[:14], y_train=names[:14], x_test=x[14:], y_test=names[14:])
    look = Look(weights, size=16, device="cpu")
    out = tmp_path / "vectors.npz"
    assert embed_data({"name": "arrays", "path": str(tmp_path / "set.npz")}, None, look, out) == (14, 1280)
    data = load(Config(path=str(out)), None)
    assert data.classes == ("cat", "dog")
    assert data.train.y.tolist() == [0, 1] * 7
    assert data.test is not None
    expected = Extractor.open(weights, size=16, device="cpu")
    from rte.data.types import ArrayImages

    found = data.test.images.fetch(np.arange(6))
    scale = np.abs(found).max()
    np.testing.assert_allclose(found, expected(ArrayImages(x[14:])), atol=1e-5 * scale)
    assert read_json(tmp_path / "vectors.json")["rows"] == {"train": 14, "test": 6}
    assert not list(tmp_path.glob(".vectors*")), "what was kept on the way is gone"


@pytest.mark.usefixtures("_letters")
def test_texts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label\naab cc,x\nb ba,y\nccc a,x\n")
    data = {"name": "text", "path": str(tmp_path / "t.csv"), "columns": {"text": "text"}}
    assert embed_data(data, None, Look(""), tmp_path / "t.npz") == (3, DIM)
    with np.load(tmp_path / "t.npz") as stored:
        np.testing.assert_array_equal(stored["x_train"], [[2, 1, 2], [1, 2, 0], [1, 0, 3]])
        assert stored["y_train"].tolist() == [0, 1, 0]
    (tmp_path / "lines.txt").write_text("a b\nc c\n")
    assert embed_examples(str(tmp_path / "lines.txt"), Look(""), tmp_path / "l.npy", column=None) == (2, DIM)
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), [[1, 1, 0], [0, 0, 2]])
    with (tmp_path / "l.csv").open() as file:
        assert list(csv.reader(file)) == [["row", "example"], ["0", "text 0"], ["1", "text 1"]]
    assert read_json(tmp_path / "l.json")["model"] == "letters"


def test_what_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("a,label\n1,x\n2,y\n")
    with pytest.raises(DataError, match="tabular holds numbers already, which need no embedding"):
        embed_data({"name": "tabular", "path": str(tmp_path / "n.csv")}, None, Look(""), tmp_path / "n.npz")
    with pytest.raises(UserError, match=r"give a name that ends in .npz .vectors and labels. or .npy"):
        embed("digits", tmp_path / "x.csv")
