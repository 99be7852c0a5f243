"""The method and the network of docs/extending.md, as printed, train, resume, predict and are loaded again."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rte import code
from rte.files import read_json
from rte.methods.base import Method
from rte.run.folder import evaluate, load_method
from rte.train import checkpoint
from rte.train.device import choose_device

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
OWN = ["--method", "soft.py:SoftLabels", "--net", "small.py:Small", "--seed", "1"]
OWN += ["--set", "train.batch=64", "--set", "method.weight=0.4"]


def rte(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "rte", *arguments]
    environment = {**os.environ, "COLUMNS": "160"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("own")
    text = PAGE.read_text(encoding="utf-8")
    for name, block in re.findall(r"the whole of\s`(\w+\.py)`:\n\n```python\n(.*?)```", text, re.DOTALL):
        (folder / name).write_text(block)
    assert sorted(path.name for path in folder.iterdir()) == ["series.py", "small.py", "soft.py"]
    return folder


@pytest.fixture(scope="module")
def trained(page: Path) -> Path:
    said = rte("fit", "digits", *OWN, "--epochs", "12", "--noise", "symmetric:0.4", "--out", "runs/own", cwd=page)
    assert "SoftLabels on digits" in said
    return page / "runs" / "own"


def test_they_are_as_short_as_the_page_says(page: Path) -> None:
    method, network = ((page / name).read_text().splitlines() for name in ("soft.py", "small.py"))
    assert 30 <= len(method) <= 40
    assert len([line for line in network if line]) <= 10


def test_a_kind_of_data_of_ones_own(page: Path) -> None:
    done = subprocess.run(
        [sys.executable, "series.py"], cwd=page, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.removeprefix("accuracy ")) > 0.8  # 30 % of the labels are wrong; a third is chance


def test_it_learns_from_noisy_labels(trained: Path) -> None:
    result = read_json(trained / "result.json")
    assert result["test"]["last"] > 0.8  # 40 % of the labels are wrong; a tenth is chance
    assert evaluate(trained, trust_code=True)["test"]["top1"] == result["test"]["last"]


def test_it_is_loaded_again_with_its_table(trained: Path) -> None:
    method, config, spec = load_method(trained, choose_device("cpu"), trust_code=True)
    assert isinstance(method, Method)
    assert config.method.weight == 0.4  # type: ignore[attr-defined]
    mean: Any = method.mean
    assert mean.shape == (spec.n, 10)
    np.testing.assert_allclose(mean.sum(1), 1, atol=1e-5)


def test_it_resumes_to_the_same_weights(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = tmp_path / "half"
    shutil.copytree(trained, half)
    states: list[bytes] = []
    usual = checkpoint.save

    def keep(path: Path, state: Any, **how: Any) -> None:
        usual(path, state, **how)
        states.append(path.read_bytes())

    from rte.run.folder import read_config
    from rte.run.start import resume, start

    monkeypatch.setattr(checkpoint, "save", keep)
    start(read_config(trained, trust_code=True).with_train(epochs=3), tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    (tmp_path / "cut" / "checkpoint.pt").write_bytes(states[0])
    monkeypatch.undo()
    monkeypatch.setattr(code, "_loaded", {})  # as in a new process
    resume(tmp_path / "cut", trust_code=True)
    one, other = (checkpoint.load(tmp_path / name / "checkpoint.pt")["method"] for name in ("whole", "cut"))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[key], other[key]) for key in one)


def test_it_predicts(trained: Path) -> None:
    data = load_digits()
    np.savez(trained.parent / "new.npz", x=(data.images[:200] / 16 * 255).astype(np.uint8))
    rte("predict", str(trained), "new.npz", "--trust-code", "--out", "new.csv", cwd=trained.parent)
    with (trained.parent / "new.csv").open() as file:
        labels = [int(row["label"]) for row in csv.DictReader(file)]
    assert np.mean(labels == data.target[:200]) > 0.8


def test_every_function_of_the_contract_is_on_the_page() -> None:
    told = set(re.findall(r"^\| `(\w+)\(", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    contract = {name for name, value in vars(Method).items() if callable(value) and not name.startswith("_")}
    assert told == contract
