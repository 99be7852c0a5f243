"""The preset without each of its parts: the same time for all, and what is read from the runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import parts
import pytest

from rte.config import RunConfig
from rte.files import read_json, write_json

FORTY = "symmetric:0.4"


def arguments(tmp_path: Path, **more: object) -> Namespace:
    return Namespace(**{"data_dir": None, "out": tmp_path, "noises": [FORTY], "seeds": 2, **more})


def test_only_what_changes_the_time_of_a_step_is_measured_and_gets_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def step_costs(configs: dict[str, RunConfig], _: Path | None) -> dict[str, float]:
        asked.append(list(configs))
        return {name: {parts.ALL: 0.1, "SGD instead of Muon": 0.05}.get(name, 0.2) for name in configs}

    monkeypatch.setattr(parts, "step_costs", step_costs)
    kept = tmp_path / "steps.json"
    known = parts.lengths(arguments(tmp_path), kept)
    assert asked == [[parts.ALL, "SGD instead of Muon", "32 pixels all along"]]
    assert known == {
        FORTY: dict.fromkeys(parts.WITHOUT[FORTY], parts.STEPS)
        | {"SGD instead of Muon": 2 * parts.STEPS, "32 pixels all along": round(parts.STEPS / 2)}
    }
    assert read_json(kept) == known
    parts.lengths(arguments(tmp_path, noises=list(parts.WITHOUT)), kept)
    assert len(asked) == 1, "nothing is measured twice, and nothing at 80 %"


def test_each_run_lacks_one_part_and_keeps_to_the_network(tmp_path: Path) -> None:
    known = {noise: dict.fromkeys(names, parts.STEPS) for noise, names in parts.WITHOUT.items()}
    found = parts.contests(arguments(tmp_path, noises=list(parts.WITHOUT)), known)
    assert len({one["folder"] for one in found}) == len(found) == 2 * 7
    assert {(c.net.name, c.net.wider, c.train.steps, c.train.holdout) for c in (one["config"] for one in found)} == {
        ("swift-24", (), parts.STEPS, 0.2)
    }
    whole, sgd = (one["config"] for one in found[:2])
    assert (whole.train.optimizer, sgd.train.optimizer) == ("muon", "sgd")
    assert sgd.train.lr.at(Namespace(epoch=0, epochs=1, fraction=0.2)) == pytest.approx(0.18), "the preset's gives way"
    assert len({one["config"].digest for one in found}) == len(found), "no two are the same run"


def test_accuracies_are_gathered_by_part_over_seeds(tmp_path: Path) -> None:
    known = {FORTY: dict.fromkeys(parts.WITHOUT[FORTY], parts.STEPS) | {"SGD instead of Muon": 3224}}
    found = parts.contests(arguments(tmp_path), known)
    for one, held, test in ((found[0], 0.5, 0.8), (found[1], 0.4, 0.7), (found[5], 0.52, 0.82)):
        one["folder"].mkdir()
        write_json(one["folder"] / "result.json", {"val": {"last": held}, "test": {"last": test}})
        if one["name"] == parts.ALL:  # as it is kept once a run has been looked at
            write_json(one["folder"] / "one_look.json", {"held_out": held - 0.01, "test": test - 0.02})
    rows = {row["name"]: row for row in parts.summary(found, known, None)}
    assert list(rows) == [parts.ALL, parts.ONE_LOOK, "SGD instead of Muon"], "what is not done is not there"
    assert rows[parts.ALL] == {
        "noise": "40 % symmetric",
        "name": parts.ALL,
        "steps": 2933,
        "seeds": [0, 1],
        "held_out": [50.0, 52.0],
        "test": [80.0, 82.0],
    }
    assert rows[parts.ONE_LOOK]["test"] == [78.0, 80.0]
    assert (rows["SGD instead of Muon"]["steps"], rows["SGD instead of Muon"]["seeds"]) == (3224, [0])
