"""The contest of methods at equal time: which network each budget has, and how long each run is."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import frontier
import pytest

from rte.config import RunConfig
from rte.files import read_json, write_json


def arguments(tmp_path: Path, **more: object) -> Namespace:
    place = {"preset": "laptop", "set": [], "data_dir": None, "out": tmp_path, "precision": "fp32"}
    what = {"methods": ["rte", "gce"], "noises": ["symmetric:0.4"], "budgets": [5.0, 30.0], "seeds": 1, "json": None}
    return Namespace(**{**place, **what, **more})


def test_a_contest_lets_the_budget_choose_and_then_keeps_to_its_choice(tmp_path: Path) -> None:
    args = arguments(tmp_path)
    assert frontier.settings(args, "rte", "symmetric:0.4").net.wider, "the time may choose a wider network"
    chosen = frontier.settings(args, "rte", "symmetric:0.4", "swift-48").net
    assert (chosen.name, chosen.wider) == ("swift-48", ())


def test_lengths_are_measured_once_for_each_network_and_then_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, float]] = []

    def networks(config: RunConfig, minutes: list[float], _: Path | None) -> dict[str, str]:
        assert config.net.wider
        return {f"{m:g}": "swift-24" if m < 10 else "swift-48" for m in minutes}

    def lengths(configs: dict[str, RunConfig], minutes: list[float], _: Path | None) -> dict[str, dict[str, int]]:
        asked.extend((name, config.net.name, m) for name, config in configs.items() for m in minutes)
        speed = {"ce": 1500, "rte": 500} if "ce" in configs else dict.fromkeys(configs, 1000)
        return {name: {f"{m:g}": speed[name] * int(m) for m in minutes} for name in configs}

    monkeypatch.setattr(frontier, "networks", networks)
    monkeypatch.setattr(frontier, "lengths", lengths)
    kept = tmp_path / "steps.json"
    known = frontier.fitted(arguments(tmp_path), kept)
    assert known.nets == {"symmetric:0.4": {"5": "swift-24", "30": "swift-48"}}
    assert known.steps["swift-24"] == {"5": {"rte": 5000, "gce": 5000}}
    assert known.steps["swift-48"] == {"30": {"rte": 30_000, "gce": 30_000}}
    assert read_json(kept) == {"nets": known.nets, "steps": known.steps}
    expected = [(name, net, m) for net, m in (("swift-24", 5.0), ("swift-48", 30.0)) for name in ("rte", "gce")]
    assert asked == expected

    again = frontier.fitted(arguments(tmp_path, methods=["rte", "ce"], budgets=[30.0]), kept)
    assert asked[len(expected) :] == [("ce", "swift-48", 30.0), ("rte", "swift-48", 30.0)], "only what is lacking"
    assert again.steps["swift-48"]["30"] == {"rte": 30_000, "gce": 30_000, "ce": 90_000}, "in the time of RTE's steps"
    frontier.fitted(arguments(tmp_path, methods=["rte", "ce"], budgets=[30.0]), kept)
    assert len(asked) == len(expected) + 2


def test_a_method_that_has_to_be_told_the_noise_is_told_it(tmp_path: Path) -> None:
    for noise, wrong in (("symmetric:0.8", 0.8), (frontier.WORST, 0.4)):
        config = frontier.settings(arguments(tmp_path), "co_teaching", noise)
        assert config.method.model_dump()["noise_rate"] == wrong


def test_all_methods_of_a_budget_have_its_network_and_runs_end_where_the_time_does(tmp_path: Path) -> None:
    steps = {"swift-24": {"5": {"rte": 3666, "gce": 3685}}, "swift-48": {"30": {"rte": 9984, "gce": 10034}}}
    known = frontier.Known({"symmetric:0.4": {"5": "swift-24", "30": "swift-48"}}, steps)
    found = frontier.contests(arguments(tmp_path, seeds=2), known)
    assert len(found) == 8
    assert {(one["minutes"], one["config"].net.name) for one in found} == {(5.0, "swift-24"), (30.0, "swift-48")}
    assert len({one["folder"] for one in found}) == 8
    first = found[0]
    assert (first["method"], first["seed"], first["config"].train.steps) == ("rte", 0, 3666)
    assert first["config"].train.epochs == 10, "3666 steps of 390 in an epoch"


def test_the_figure_has_noises_that_have_several_times() -> None:
    rows = [
        {"noise": noise, "minutes": m} for noise, m in (("a", 5.0), ("b", 5.0), ("a", 5.0), ("b", 10.0), ("c", 5.0))
    ]
    assert frontier.panels(rows) == ["b"]
    assert frontier.panels(rows[:3]) == ["a", "b"]


FIVE = frontier.Known({"symmetric:0.4": {"5": "swift-24"}}, {"swift-24": {"5": {"rte": 3666}}})


def finish(folder: Path, last: float, memorised: float | None = 0.25) -> None:
    folder.mkdir()
    write_json(folder / "result.json", {"test": {"last": last}, "memorisation": {"memorised": memorised}})


def test_of_clean_labels_none_is_memorised(tmp_path: Path) -> None:
    found = frontier.contests(arguments(tmp_path, methods=["rte"], budgets=[5.0]), FIVE)
    finish(found[0]["folder"], 0.8875, None)
    (row,) = frontier.summary(found)
    assert (row["last"], row["memorised"]) == ([88.75], [None])


def test_results_are_added_to_over_several_sessions(tmp_path: Path) -> None:
    args = arguments(tmp_path, json=tmp_path / "results.json", methods=["rte"], budgets=[5.0], seeds=2)
    known = FIVE
    found = frontier.contests(args, known)
    finish(found[0]["folder"], 0.8)
    (first,) = frontier.summary(found)
    assert (first["seeds"], first["last"], first["spread"]) == ([0], [80.0], None)
    write_json(args.json, {"rows": [first]})
    assert frontier.fitted(args, tmp_path / "steps.json") == known, "no need to measure what the results tell"

    later = frontier.contests(arguments(tmp_path / "new", methods=["rte"], budgets=[5.0], seeds=2), known)
    (tmp_path / "new").mkdir()
    finish(later[1]["folder"], 0.82)
    old = frontier.recorded(args.json)
    assert [one["seed"] in frontier.seeds(one, old["rows"]) for one in later] == [True, False]
    (both,) = frontier.summary(later, old["rows"])
    assert (both["seeds"], both["last"], both["mean"]) == ([0, 1], [80.0, 82.0], 81.0)
    assert frontier.combined(args, [both], old) == {"rows": [both], "earlier": []}


def test_rows_tell_which_seeds_were_computed_in_half_precision(tmp_path: Path) -> None:
    args = arguments(tmp_path, methods=["rte"], budgets=[5.0], seeds=2)
    found = frontier.contests(args, FIVE)
    finish(found[0]["folder"], 0.8)
    (plain,) = frontier.summary(found)
    assert "bf16" not in plain
    (tmp_path / "half").mkdir()
    half = frontier.contests(
        arguments(tmp_path / "half", methods=["rte"], budgets=[5.0], seeds=2, precision="bf16"), FIVE
    )
    assert [one["config"].train.precision for one in half] == ["bf16", "bf16"]
    assert half[0]["recipe"] == found[0]["recipe"], "how a run is computed is no setting of the contest"
    finish(half[1]["folder"], 0.82)
    (both,) = frontier.summary(half, [plain])
    assert (both["seeds"], both["last"], both["bf16"]) == ([0, 1], [80.0, 82.0], [1])
    (again,) = frontier.summary(found, [both])
    assert again == both


def test_results_of_other_settings_become_earlier_ones(tmp_path: Path) -> None:
    args = arguments(tmp_path, methods=["rte"], budgets=[5.0])
    known = FIVE
    found = frontier.contests(args, known)
    finish(found[0]["folder"], 0.8)
    (row,) = frontier.summary(found)
    other = frontier.contests(arguments(tmp_path, set=["views.pad=3"], methods=["rte"], budgets=[5.0]), known)
    assert not frontier.seeds(other[0], [row]), "what was run with other settings says nothing"
    worst = {**row, "noise": "CIFAR-10N worst", "recipe": "of another time"}
    kept = frontier.combined(args, [row], {"rows": [row, worst], "earlier": []})
    assert kept == {"rows": [row], "earlier": [worst]}
    assert frontier.combined(args, [], {"rows": [row], "earlier": [worst]}) == kept
    longer = frontier.summary([{**found[0], "steps": 4000}])
    assert frontier.combined(args, longer, {"rows": [row], "earlier": []}) == {"rows": longer, "earlier": [row]}


def test_rows_have_the_same_order_whatever_was_run_last(tmp_path: Path) -> None:
    cells = [("80 % symmetric", 5.0, "rte"), ("40 % symmetric", 30.0, "rte"), ("40 % symmetric", 5.0, "other")]
    cells += [("40 % symmetric", 5.0, name) for name in ("elr", "gce", "rte")]
    rows = [dict(zip(("noise", "minutes", "method"), cell, strict=True)) for cell in cells]
    kept = frontier.combined(arguments(tmp_path), rows, {"rows": [], "earlier": []})["rows"]
    assert kept == [rows[5], rows[4], rows[3], rows[2], rows[1], rows[0]]


def test_lengths_of_other_settings_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = arguments(tmp_path, json=tmp_path / "results.json", methods=["rte"], budgets=[5.0])
    stale = {"noise": "40 % symmetric", "minutes": 5.0, "method": "rte", "net": "swift-16", "steps": 1, "recipe": "old"}
    write_json(args.json, {"rows": [stale]})
    monkeypatch.setattr(frontier, "networks", lambda config, minutes, _: {"5": "swift-24"})
    monkeypatch.setattr(frontier, "lengths", lambda configs, minutes, _: {name: {"5": 3000} for name in configs})
    found = frontier.fitted(args, tmp_path / "steps.json")
    assert found == frontier.Known({"symmetric:0.4": {"5": "swift-24"}}, {"swift-24": {"5": {"rte": 3000}}})


def test_each_noise_may_have_a_network_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def networks(config: RunConfig, minutes: list[float], _: Path | None) -> dict[str, str]:
        return {f"{m:g}": "swift-32" if "0.8" in str(config.noise) else "swift-48" for m in minutes}

    monkeypatch.setattr(frontier, "networks", networks)
    monkeypatch.setattr(frontier, "lengths", lambda configs, minutes, _: {name: {"30": 9} for name in configs})
    args = arguments(tmp_path, noises=["symmetric:0.4", "symmetric:0.8"], budgets=[30.0])
    found = frontier.contests(args, frontier.fitted(args, tmp_path / "steps.json"))
    expected = [(noise, m, net) for noise, net in (("40 %", "swift-48"), ("80 %", "swift-32")) for m in ("rte", "gce")]
    assert [(one["noise"][:4], one["method"], one["config"].net.name) for one in found] == expected
