"""The schedule along a lineage, as a file and as settings of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import at

from rte.config import RunConfig
from rte.errors import ConfigError
from rte.parts.schedules import Constant, Steps
from rte.search.population import Record
from rte.search.schedule import FoundSchedule, from_lineage, read_schedule, resolve_with

LINEAGE = [
    Record(3, 0, 2, 3, {"train.lr": 0.01, "method.q": 0.2, "method.views": 3}, 0.3, "x"),
    Record(0, 2, 4, 3, {"train.lr": 0.02, "method.q": 0.2, "method.views": 4}, 0.4, "x"),
    Record(0, 4, 5, 0, {"train.lr": 0.02, "method.q": 0.1, "method.views": 4}, 0.5, "x"),
]


def found(lineage: list[Record] = LINEAGE, method: str = "rte") -> FoundSchedule:
    return from_lineage(lineage, data="digits", method=method, interval=2, population=4, seed=7)


def replay(*overrides: str, schedule: FoundSchedule | None = None, **options: Any) -> RunConfig:
    return resolve_with(schedule or found(), "digits", options, overrides)


def test_a_value_for_every_epoch() -> None:
    schedule = found()
    assert schedule.values == {
        "train.lr": [0.01, 0.01, 0.02, 0.02, 0.02],
        "method.q": [0.2, 0.2, 0.2, 0.2, 0.1],
        "method.views": [3, 3, 4, 4, 4],
    }
    assert schedule.members == [3, 3, 0, 0, 0]
    assert (schedule.epochs, schedule.score, schedule.population) == (5, 0.5, 4)


def test_replayed_epoch_by_epoch() -> None:
    config = replay()
    assert config.train.epochs == 5
    assert config.train.lr == Steps(values=(0.01, 0.02), epochs=(0, 2))
    for epoch in range(5):
        t = at(epoch, 5)
        assert config.train.lr.at(t) == found().values["train.lr"][epoch]
        assert config.method.q.at(t) == found().values["method.q"][epoch]  # type: ignore[attr-defined]
    assert config.train.batch == 64  # the preset's
    assert config.method.jsd_weight == Constant(value=4.0)  # type: ignore[attr-defined]


def test_a_setting_of_the_views_is_the_winner_s_last_one_throughout() -> None:
    lineage = [
        Record(0, 0, 2, 0, {"train.lr": 0.01, "views.severity": 2.0}, 0.3, "x"),
        Record(0, 2, 4, 0, {"train.lr": 0.01, "views.severity": 3.5}, 0.4, "x"),
    ]
    schedule = found(lineage)
    assert replay(schedule=schedule).views.severity == 3.5  # type: ignore[attr-defined]
    assert schedule.notes() == ["views.severity cannot change during a run; it is 3.5 throughout."]


def test_a_run_of_another_length_stretches_it() -> None:
    for config in (replay(train={"epochs": 10}), replay("train.epochs=10")):
        assert config.train.epochs == 10
        assert [config.train.lr.at(at(epoch, 10)) for epoch in range(10)] == [0.01] * 4 + [0.02] * 6
        assert [config.method.q.at(at(epoch, 10)) for epoch in range(10)] == [0.2] * 8 + [0.1] * 2


def test_the_command_line_counts_more(tmp_path: Path) -> None:
    config = replay("method.q=0.9", noise={"name": "none"})
    assert config.method.q == Constant(value=0.9)  # type: ignore[attr-defined]
    assert config.noise.name == "none"
    steps = tmp_path / "steps.toml"  # the preset's own steps, by fractions, must not shine through
    steps.write_text('[train]\nlr = { kind = "steps", values = [0.1, 0.2], fractions = [0, 0.5] }\n')
    assert resolve_with(found(), str(steps), {}).train.lr == Steps(values=(0.01, 0.02), epochs=(0, 2))


def test_a_plain_number_keeps_the_last_value() -> None:
    values = [{"method.beta": 0.6, "method.weight": 2.0}, {"method.beta": 0.8, "method.weight": 3.0}]
    lineage = [Record(0, k, k + 1, 0, v, 0.5, "x") for k, v in enumerate(values)]
    schedule = found(lineage, "elr")
    config = replay(schedule=schedule)
    assert schedule.notes() == ["method.beta cannot change during a run; it is 0.8 throughout."]
    assert config.method_name == "elr"
    assert config.method.beta == 0.8  # type: ignore[attr-defined]
    assert config.method.weight == Steps(values=(2.0, 3.0), epochs=(0, 1))  # type: ignore[attr-defined]
    assert found().notes() == []


def test_another_method_is_refused() -> None:
    with pytest.raises(ConfigError, match="found for method rte, not gce; leave out --method"):
        replay(method={"name": "gce"})
    assert replay(method={"name": "rte"}) == replay()


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    tree = found().model_dump(mode="json")
    path.write_text(json.dumps(tree))
    assert read_schedule(path) == found()
    with pytest.raises(ConfigError, match=r"no schedule .*; give the schedule\.json"):
        read_schedule(tmp_path / "other.json")
    path.write_text(json.dumps(tree | {"epochs": 6}))
    with pytest.raises(ConfigError, match="5 values for 6 epochs"):
        read_schedule(path)
    path.write_text(json.dumps(tree | {"format": 2}))
    with pytest.raises(ConfigError, match="format"):
        read_schedule(path)
    path.write_text("[1]")
    with pytest.raises(ConfigError, match="must be a table"):
        read_schedule(path)
