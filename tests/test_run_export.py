"""A run as one file: it answers as the run does, for any number of examples, and says what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick
from PIL import Image
from safetensors import safe_open
from test_nets_weights import random_state
from typer.testing import CliRunner

from rte.cli import app
from rte.errors import CheckpointError, UserError
from rte.run import export as exporting
from rte.run.card import _noise
from rte.run.export import export
from rte.run.start import start

PAGE = Path(__file__).parent.parent / "docs" / "deploy.md"


def folder_of_photos(root: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    for label in ("a", "b"):
        (root / label).mkdir(parents=True)
        for k, size in enumerate([(40, 44), (60, 40), (33, 90), (35, 35)] * 3):
            pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / label / f"{k}.png")
    return {"name": "folder", "path": str(root)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("export")
    data = folder_of_photos(root / "photos")
    train = {"epochs": 1, "batch": 8, "holdout": 0.25}
    none = {"name": "none", "ratio": 0.0}
    views = {"size": 32, "mirror": True}
    start(quick("ce", data=data, noise=none, train=train, net={"name": "compact-8"}, views=views), root / "run")
    torch.save(random_state("mobilenet-v2"), root / "w.pth")
    net = {"init": str(root / "w.pth"), "train": "frozen"}
    start(quick("auto", data=data, noise=none, train=train, net=net, views={"size": 32}), root / "once")
    return root


def test_onnx_runs_by_the_example_of_the_page_and_answers_as_predict_does(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    made = CliRunner().invoke(app, ["export", str(run / "run"), "--out", str(tmp_path / "deployed")])
    assert made.exit_code == 0, made.output
    assert "answers as the run does" in made.output
    assert sorted(p.name for p in (tmp_path / "deployed").iterdir()) == ["README.md", "model.onnx"]
    again = CliRunner().invoke(app, ["export", str(run / "run"), "--out", str(tmp_path / "deployed")])
    assert "exists already" in str(again.exception)

    picture = run / "photos" / "a" / "1.png"
    example = re.search(r"```python\n(import json.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    code = example[1].replace("model.onnx", str(tmp_path / "deployed" / "model.onnx"))
    space: dict[str, Any] = {}
    exec(code.replace("photo.jpg", str(picture)), space)
    shown = CliRunner().invoke(app, ["predict", str(run / "run"), str(picture), "--probabilities"]).stdout
    row = shown.splitlines()[1].split(",")
    np.testing.assert_allclose(space["probabilities"], [float(p) for p in row[-2:]], atol=2e-3)
    assert space["classes"] == ["a", "b"]


@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_other_forms_hold_the_same(run: Path, tmp_path: Path, form: Any) -> None:
    made = export(run / "once", tmp_path / "out", form)
    assert made["difference"] < 1e-3
    assert made["on"] == "examples of the run's data"
    if form == "safetensors":
        with safe_open(made["file"], "pt") as file:
            about = file.metadata()
    else:
        extra = {"classes": "", "preprocessing": ""}
        loaded = torch.export.load(made["file"], extra_files=extra).module()
        about = extra
        x = torch.zeros(5, 32, 32, 3, dtype=torch.uint8)
        assert loaded(x).shape == (5, 2)
    assert json.loads(about["classes"]) == ["a", "b"]
    assert json.loads(about["preprocessing"])["resize_shorter_side_to"] == 37
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| trained on | 18 examples, labels as given |" in card
    assert "held-out labels" in card
    assert "ImageNet" in card


def test_the_card_says_how_wrong_the_labels_are_and_how_that_is_known() -> None:
    known = {"name": "none", "ratio_measured": 0.502}
    assert _noise(known, {}) == ["50.2 % of the labels differ from the true ones that came with the data."]
    made = {"name": "symmetric", "ratio_measured": 0.4}
    assert _noise(made, {}) == ["40.0 % of the labels were made wrong for an experiment (symmetric)."]
    unknown = {"name": "none", "ratio_measured": None}
    assert "About 50 % of the training labels seem wrong" in _noise(unknown, {"implied": {"noise": 0.5}})[0]
    assert "not estimated" in _noise(unknown, {})[0]


def test_a_file_that_answers_otherwise_is_not_kept(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "CLOSE", -1.0)
    with pytest.raises(CheckpointError, match="answers otherwise than the run"):
        export(run / "run", tmp_path / "out", "safetensors")
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_what_is_missing_is_named(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"robust-temporal-ensembling\[onnx\]"):
        export(run / "run", tmp_path / "out")
    refused = CliRunner().invoke(app, ["export", str(run / "run"), "--format", "onx"])
    assert "onnx" in str(refused.exception)
