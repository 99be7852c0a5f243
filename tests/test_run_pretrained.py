"""Runs that start from trained weights: what they record, what learns, and that they go on with the same file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import quick
from test_nets_weights import random_state
from test_train_trainer import trainer
from typer.testing import CliRunner

from rte.cli import app
from rte.config import RunConfig
from rte.data.types import ArrayImages
from rte.errors import CheckpointError, ConfigError, UserError
from rte.files import read_json
from rte.methods.base import Progress
from rte.nets import weights
from rte.run.build import load_dataset, prepare
from rte.run.predictor import Predictor
from rte.run.start import resume, start
from rte.search.definition import Search, SearchConfig
from rte.search.space import declared

SLOW = 0.25


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "mobile.pth"
    torch.save(random_state("mobilenet-v2"), path)
    return path


def config(file: Path, method: str = "ce", **net: Any) -> RunConfig:
    train = {"epochs": 1, "examples": 64, "batch": 16, "evaluate_every": 1}
    net = {"init": str(file), "backbone_rate": SLOW, **net}
    return quick(method, train=train, net=net, views={"size": 16})


def stem(state: dict[str, torch.Tensor], prefix: str) -> torch.Tensor:
    return state[f"{prefix}.net.stem.0.weight"]  # digits are grey: the network is one for colour, inside


def test_a_run_starts_from_the_file_and_records_it(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    made = trainer(config(Path(file.name)))
    theirs = torch.load(file, weights_only=True)
    assert torch.equal(made.method.net.net.stem[0].weight, theirs["features.0.0.weight"])
    head = made.method.net.head
    assert (head.in_features, head.out_features) == (1280, 10), "made anew, for ten classes"
    start(config(Path(file.name)), tmp_path / "run")
    net = read_json(tmp_path / "run" / "config.json")["net"]
    assert (net["name"], net["init"], net["init_sha256"]) == (
        "mobilenet-v2", str(file), hashlib.sha256(file.read_bytes()).hexdigest()
    )  # fmt: skip
    spec = read_json(tmp_path / "run" / "input.json")
    assert spec["mean"] == [pytest.approx((0.485 + 0.456 + 0.406) / 3)], "the normalisation of the weights"
    assert spec["size"] == [16, 16]


def test_the_size_is_the_weights_own_unless_it_is_given(file: Path) -> None:
    asked = config(file)
    digits = load_dataset(asked, None)
    assert prepare(asked, digits).spec.size == (16, 16)
    plain = RunConfig.from_tree({**asked.tree(), "views": {}})
    assert prepare(plain, digits).spec.size == (224, 224)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_head_and_backbone_have_rates_of_their_own(file: Path, optimizer: str) -> None:
    made = trainer(config(file, "rte").with_train(optimizer=optimizer))
    next(made.steps())
    rates = {
        id(p): group["lr"] / made.optimizer.lr for group in made.optimizer.torch.param_groups for p in group["params"]
    }
    net = made.method.student
    assert {rates[id(p)] for p in net.head.parameters()} == {1.0}
    assert {rates[id(p)] for p in net.backbone()} == {SLOW}
    assert len(rates) == len(list(net.parameters())), "and the teacher's are not the optimiser's"


def test_a_frozen_network_trains_its_head_alone_and_goes_on_as_it_was(file: Path) -> None:
    saved: dict[str, Any] = {}
    frozen = config(file, "rte", train="frozen").with_train(epochs=2)
    made = trainer(frozen)
    before = {key: value.clone() for key, value in made.method.state_dict().items()}
    made.fit()
    after = made.method.state_dict()
    moved = {key for key in before if not torch.equal(before[key], after[key])}
    heads = {f"{part}.head.{k}" for part in ("student", "teacher.module") for k in ("weight", "bias")}
    assert moved == {*heads, "teacher.updates"}
    first, again = trainer(frozen, saved), trainer(frozen)
    first.fit(until=1)
    again.restore(saved["checkpoint"])
    again.fit()
    assert all(torch.equal(value, after[key]) for key, value in again.method.state_dict().items())


def test_what_learns_decides_the_optimiser_where_the_preset_has_muon(file: Path) -> None:
    digits = load_dataset(config(file), None)
    whole = prepare(config(file).with_train(optimizer="muon"), digits).config.train
    assert whole.optimizer == "sgd"
    head = prepare(config(file, train="frozen").with_train(optimizer="muon"), digits).config.train
    assert (head.optimizer, head.lr.at(Progress(2, 10))) == ("adam", 0.002)
    assert prepare(config(file).with_train(optimizer="adam"), digits).config.train.optimizer == "adam"


def test_a_run_goes_on_with_the_same_weights_only_and_predicts_without_them(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save(random_state("mobilenet-v2"), path)
    asked = config(path)
    start(asked, tmp_path / "run")
    expected = stem(torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["method"], "net")
    torch.save({key: value + 1 for key, value in random_state("mobilenet-v2").items()}, path)
    weights.read.cache_clear()
    with pytest.raises(CheckpointError, match=r"w\.pth has changed since the run began"):
        resume(tmp_path / "run")
    path.unlink()
    weights.read.cache_clear()
    with pytest.raises(ConfigError, match=r"there is no file of weights .*w\.pth"):
        resume(tmp_path / "run")
    predictor = Predictor.load(tmp_path / "run", device="cpu")
    assert torch.equal(stem(predictor.method.state_dict(), "net"), expected)
    images = load_dataset(asked, None).train.images
    assert isinstance(images, ArrayImages)
    assert predictor.probabilities(ArrayImages(images.pixels[:3])).shape == (3, 10)


def test_a_search_records_what_all_its_members_start_from(file: Path) -> None:
    plan = Search.make(config(file, "rte").with_train(epochs=4), SearchConfig(interval=1), declared("rte"), None)
    assert (plan.config.net.name, plan.config.net.init_sha256) == ("mobilenet-v2", weights.read(str(file)).sha256)


def test_what_cannot_be(file: Path) -> None:
    with pytest.raises(UserError, match=r"net: train = frozen holds weights that have learnt nothing.*net.init"):
        quick("ce", net={"train": "frozen"})


def test_the_command_line_takes_weights_and_no_second_network(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    base = ["fit", "digits", "-m", "ce", "--epochs", "1", "--init", str(file), "--frozen", "--set", "views.size=16"]
    base += ["--set", "train.examples=64", "--set", "train.batch=16", "--set", "train.device=cpu", "--out", str(out)]
    done = CliRunner().invoke(app, base)
    assert done.exit_code == 0, done.output
    assert "rte: mobilenet-v2 from mobile.pth: 312 tensors fit, the head is made anew" in done.stderr
    net = read_json(out / "config.json")["net"]
    assert (net["train"], net["name"]) == ("frozen", "mobilenet-v2")
    refused = CliRunner().invoke(app, [*base, "--net", "compact"])
    assert isinstance(refused.exception, UserError)
    assert "--net and --init each name a network" in str(refused.exception)
