"""What the benchmarks that train share: what a step costs, and runs that are not done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import common
import pytest
from common import Meter, step_costs, trained
from conftest import quick

from rte.config import RunConfig
from rte.errors import CheckpointError
from rte.files import write_json
from rte.run.budget import with_budget


def watched(meter: Meter, what: Any, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """What the batches of its steps are like, from now on."""
    seen: set[int] = set()
    plain = meter.trainer.method.step

    def step(batch: Any, t: Any, update: Any) -> Any:
        seen.add(what(batch))
        return plain(batch, t, update)

    monkeypatch.setattr(meter.trainer.method, "step", step)
    return seen


def test_each_number_of_views_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {"kind": "steps", "values": [0, 2, 4], "fractions": [0, 0.5, 0.75]}
    meter = Meter(quick("rte", method={"views": views, "jsd_weight": 0.0}), None)
    seen = watched(meter, lambda batch: batch.plan.strong, monkeypatch)
    for _ in range(2):
        assert meter.step() > 0
        assert seen == {0, 2, 4}
        seen.clear()


def test_each_resolution_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    rising = {"kind": "steps", "values": [0.5, 1.0], "fractions": [0, 0.9]}
    meter = Meter(quick("ce", train={"resolution": rising}), None)
    seen = watched(meter, lambda batch: batch.views.shape[-1], monkeypatch)
    meter.step()
    assert seen == {4, 8}


@pytest.mark.parametrize("method", ["auto", "dividemix"])
def test_what_a_method_has_seen_while_it_was_timed_does_not_count(method: str) -> None:
    meter = Meter(quick(method, train={"epochs": 4}), None)
    meter.step()
    meter.trainer.method.load_state_dict(meter.begin)  # nothing has changed shape, and nothing is lacking


def test_the_cost_is_the_mean_over_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"one": 0.1, "two": 0.3}
    monkeypatch.setattr(Meter, "step", lambda self: seconds[self.trainer.cfg.optimizer.replace("sgd", "one")[:3]])
    seconds["ada"] = seconds["two"]
    configs = {"a": quick("ce"), "b": quick("ce", train={"optimizer": "adam", "lr": 0.001})}
    assert step_costs(configs, None, rounds=2) == {"a": 0.1, "b": 0.3}
    monkeypatch.undo()
    late = {"kind": "steps", "values": [0, 2], "fractions": [0, 0.75]}
    meter = Meter(quick("rte", method={"views": late, "jsd_weight": 0.0}), None)
    monkeypatch.setattr(Meter, "_seconds", lambda self, fraction, times: 1.0 + 2 * (fraction >= 0.75))
    assert meter.step() == pytest.approx(1.5)


def test_a_run_is_done_once_and_refused_with_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce", train={"epochs": 1})
    first = trained(tmp_path / "run", config)
    monkeypatch.setattr(common, "start", None)
    assert trained(tmp_path / "run", config) == first
    (tmp_path / "run" / "result.json").unlink()
    assert trained(tmp_path / "run", config)["test"] == first["test"], "continued where it was begun"
    with pytest.raises(CheckpointError, match="other settings; choose another folder"):
        trained(tmp_path / "run", config.with_train(epochs=2))


def test_a_run_by_the_clock_is_known_again_with_the_network_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = quick("ce", net={"name": "compact-8", "wider": ["compact-12"]})
    asked: list[dict[str, Any]] = []

    def start(config: RunConfig, folder: Path, **how: Any) -> dict[str, Any]:
        asked.append(how)
        folder.mkdir()
        write_json(folder / "config.json", with_budget(config.with_net("compact-12"), how["budget"]).tree())
        write_json(folder / "result.json", {"steps": 7})
        return {"steps": 7}

    monkeypatch.setattr(common, "start", start)
    for _ in range(2):
        assert trained(tmp_path / "one", config, seconds=60.0) == {"steps": 7}
        assert trained(tmp_path / "two", config, seconds=60.0, like=tmp_path / "one") == {"steps": 7}
    assert asked == [{"data_dir": None, "budget": 60.0, "clock": like} for like in (None, tmp_path / "one")]
    for other, seconds in ((config, 61.0), (config.with_train(batch=64), 60.0)):
        with pytest.raises(CheckpointError, match="other settings"):
            trained(tmp_path / "one", other, seconds=seconds)
