"""The contest of methods at equal time: which runs there are, whose path they follow, and what becomes of results."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import frontier
import pytest

from rte.files import write_json


def arguments(tmp_path: Path, **more: object) -> Namespace:
    place = {"preset": "laptop", "set": [], "data_dir": None, "out": tmp_path, "shard": None}
    what = {"methods": ["auto", "gce"], "noises": ["symmetric:0.4"], "budgets": [5.0, 30.0], "seeds": 1, "json": None}
    return Namespace(**{**place, **what, **more})


def finish(folder: Path, last: float, memorised: float | None = 0.25, net: str = "swift-24", steps: int = 3666) -> None:
    folder.mkdir(parents=True)
    scores = {"test": {"last": last}, "memorisation": {"memorised": memorised}}
    write_json(folder / "result.json", {**scores, "net": net, "steps": steps})


def contest(tmp_path: Path, **more: Any) -> tuple[Namespace, list[dict[str, Any]]]:
    """Of one method in one time, two seeds."""
    args = arguments(tmp_path, **{"methods": ["auto"], "budgets": [5.0], "seeds": 2, **more})
    return args, frontier.contests(args)


def test_the_budget_chooses_the_network_of_a_run(tmp_path: Path) -> None:
    args = arguments(tmp_path)
    assert frontier.settings(args, "auto", "symmetric:0.4").net.wider, "the time may choose a wider network"
    chosen = frontier.settings(args, "auto", "symmetric:0.4", "swift-48").net
    assert (chosen.name, chosen.wider) == ("swift-48", ())


def test_a_method_that_has_to_be_told_the_noise_is_told_it(tmp_path: Path) -> None:
    for noise, wrong in (("symmetric:0.8", 0.8), (frontier.WORST, 0.4)):
        config = frontier.settings(arguments(tmp_path), "co_teaching", noise)
        assert config.method.model_dump()["noise_rate"] == wrong


def test_later_seeds_follow_the_path_of_the_first_one(tmp_path: Path) -> None:
    found = frontier.contests(arguments(tmp_path, seeds=2))
    assert len(found) == len({one["folder"] for one in found}) == 8
    assert [(one["seed"], one["minutes"], one["method"]) for one in found[:3]] == [
        (0, 5.0, "auto"),
        (0, 5.0, "gce"),
        (0, 30.0, "auto"),
    ]
    assert all(one["like"] is None for one in found[:4])
    for first, later in zip(found[:4], found[4:], strict=True):
        assert later["like"] == first["folder"]
        assert (first["config"].seed, later["config"].seed) == (0, 1)
        assert frontier.key(first["config"]) != frontier.key(later["config"])


def test_runs_have_the_time_of_their_cell_and_are_not_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, float, str | None]] = []

    def trained(folder: Path, config: Any, data_dir: Any, *, seconds: float, like: Path | None) -> dict[str, Any]:
        asked.append((folder.name, seconds, like and like.name))
        finish(folder, 0.8)
        return {"test": {"last": 0.8}, "steps": 3666}

    monkeypatch.setattr(frontier, "trained", trained)
    command = ["frontier", "--out", str(tmp_path), "--methods", "auto,gce", "--noises", "symmetric:0.4", "--budgets"]
    command += ["5", "--seeds", "2", "--json", str(tmp_path / "results.json")]
    for one in ("auto-s0", "gce-s0", "auto-s1", "gce-s1"):
        if one == "gce-s0":
            monkeypatch.setattr("sys.argv", [*command, "--shard", "1/2"])
            frontier.main()
            assert [name[-7:] for name, *_ in asked] == ["auto-s0", "auto-s1"]
            monkeypatch.setattr("sys.argv", command)
            frontier.main()
    names = [name.removeprefix("symmetric-0.4-5m-") for name, *_ in asked]
    assert names == ["auto-s0", "auto-s1", "gce-s0", "gce-s1"]
    assert {seconds for _, seconds, _ in asked} == {300.0}
    assert [like for *_, like in asked] == [None, "symmetric-0.4-5m-auto-s0", None, "symmetric-0.4-5m-gce-s0"]
    rows = frontier.recorded(tmp_path / "results.json")["rows"]
    assert [(row["method"], row["seeds"], row["last"]) for row in rows] == [
        ("auto", [0, 1], [80.0, 80.0]),
        ("gce", [0, 1], [80.0, 80.0]),
    ]


def test_the_figure_has_noises_that_have_several_times() -> None:
    rows = [
        {"noise": noise, "minutes": m} for noise, m in (("a", 5.0), ("b", 5.0), ("a", 5.0), ("b", 10.0), ("c", 5.0))
    ]
    assert frontier.panels(rows) == ["b"]
    assert frontier.panels(rows[:3]) == ["a", "b"]


def test_of_clean_labels_none_is_memorised(tmp_path: Path) -> None:
    args, found = contest(tmp_path)
    finish(found[0]["folder"], 0.8875, None)
    (row,) = frontier.summary(args, found)
    assert (row["last"], row["memorised"], row["steps"], row["net"]) == ([88.75], [None], 3666, "swift-24")


def test_results_are_added_to_over_several_sessions(tmp_path: Path) -> None:
    args, found = contest(tmp_path)
    finish(found[0]["folder"], 0.8)
    (first,) = frontier.summary(args, found)
    assert (first["seeds"], first["last"], first["spread"]) == ([0], [80.0], None)

    args, later = contest(tmp_path / "new")
    assert [frontier.known(args, one, [first]) for one in later] == [True, False]
    finish(later[1]["folder"], 0.82)
    (both,) = frontier.summary(args, later, [{**first, "bf16": [0]}])
    assert (both["seeds"], both["last"], both["mean"]) == ([0, 1], [80.0, 82.0], 81.0)
    assert both["bf16"] == [0], "which of them was computed in half precision is kept"
    assert frontier.combined(args, [both], {"rows": [first], "earlier": []}) == {"rows": [both], "earlier": []}


def test_results_of_other_settings_become_earlier_ones(tmp_path: Path) -> None:
    args, found = contest(tmp_path, seeds=1)
    finish(found[0]["folder"], 0.8)
    (row,) = frontier.summary(args, found)
    other, changed = contest(tmp_path, set=["views.pad=3"])
    assert not frontier.known(other, changed[0], [row]), "what was run with other settings says nothing"
    worst = {**row, "noise": "CIFAR-10N worst", "recipe": "of another time"}
    kept = frontier.combined(args, [row], {"rows": [row, worst], "earlier": []})
    assert kept == {"rows": [row], "earlier": [worst]}
    assert frontier.combined(args, [], {"rows": [row], "earlier": [worst]}) == kept
    stale = {**row, "net": "swift-48"}
    assert frontier.combined(args, [row], {"rows": [stale], "earlier": []}) == {"rows": [row], "earlier": [stale]}


def test_rows_have_the_same_order_whatever_was_run_last(tmp_path: Path) -> None:
    cells = [("80 % symmetric", 5.0, "auto"), ("40 % symmetric", 30.0, "auto"), ("40 % symmetric", 5.0, "other")]
    cells += [("40 % symmetric", 5.0, name) for name in ("elr", "gce", "auto")]
    rows = [dict(zip(("noise", "minutes", "method"), cell, strict=True)) for cell in cells]
    kept = frontier.combined(arguments(tmp_path), rows, {"rows": [], "earlier": []})["rows"]
    assert kept == [rows[5], rows[4], rows[3], rows[2], rows[1], rows[0]]
