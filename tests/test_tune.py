"""`rte tune` as a user calls it: mistakes in one sentence, and `rte fit --schedule`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import quick

from rte.cli import main
from rte.errors import ConfigError
from rte.report.tuning import plan, planned
from rte.search.definition import Search, SearchConfig, read_plan, write_plan
from rte.search.space import Choice, declared

WITHOUT_RAY = "import sys; sys.modules['ray'] = None; from rte.cli import main; main()"


def rte(*arguments: str, cwd: Path, code: str = "from rte.cli import main; main()") -> tuple[int, str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("RTE_DATA", "RAY_ADDRESS")}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=environment | {"COLUMNS": "160"}, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_without_ray_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    code, out, errors = rte("tune", "digits", cwd=tmp_path, code=WITHOUT_RAY)
    assert (code, out) == (2, "")
    assert errors == "rte: rte tune needs Ray Tune; install robust-temporal-ensembling[tune].\n"
    assert not (tmp_path / "runs").exists()


def test_the_command_line_loads_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import sys, rte.cli; print([name for name in ('torch', 'ray', 'numpy', 'rich.live') if name in sys.modules])"
    )
    assert rte(cwd=tmp_path, code=script)[1] == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["digits", "--interval", "40"], "--interval 40 leaves no decision within train.epochs = 40"),
        (["digits", "--population", "1"], "search.population = 1"),
        (["digits", "--search", "method.lr=[0, 1]"], "'method.lr' is not searched; did you mean"),
        (["digits", "--resume", "somewhere"], "--resume takes the settings of the search from its folder"),
        (["--asynchronous", "--resume", "somewhere"], "--resume takes the settings of the search from its folder"),
        (["--resume", "somewhere"], "somewhere is no folder of a search (it has no tune.json)"),
    ],
)
def test_mistakes(
    arguments: list[str],
    part: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RTE_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["rte", "tune", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    errors = capsys.readouterr().err
    assert part in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_options_become_a_plan(tmp_path: Path) -> None:
    options = {"population": 6, "interval": None, "gpus_per_trial": 0.25, "asynchronous": True}
    made = plan(quick("rte", train={"epochs": 9}), options, ["method.views=[2, 3]"], tmp_path)
    assert made.search == SearchConfig(population=6, interval=2, gpus_per_trial=0.25, asynchronous=True)
    assert made.space["method.views"] == Choice((2, 3))
    assert (made.data_dir, made.config.train.holdout) == (tmp_path, 0.1)
    with pytest.raises(ConfigError, match=r"search\.cpus_per_trial = 0"):
        plan(quick("rte"), {"cpus_per_trial": 0.0, "interval": 1}, [], None)


def test_a_search_may_go_on_with_other_trials_and_data_elsewhere(tmp_path: Path) -> None:
    old = Search.make(quick("rte"), SearchConfig(population=4, interval=1), declared("rte"), None)
    write_plan(tmp_path, old)
    assert planned(tmp_path, {"cpus_per_trial": None, "gpus_per_trial": None}, None) == old
    moved = planned(tmp_path, {"cpus_per_trial": 2.0, "gpus_per_trial": None}, tmp_path)
    assert (moved.search.cpus_per_trial, moved.search.population, moved.data_dir) == (2.0, 4, tmp_path)
    assert read_plan(tmp_path) == moved


def test_fit_replays_a_schedule_and_says_what_cannot_change(tmp_path: Path) -> None:
    columns = {"train.lr": [0.01, 0.02], "method.weight": [1.0, 1.0], "method.beta": [0.6, 0.8]}
    schedule = {"format": 1, "data": "digits", "method": "elr", "epochs": 2, "interval": 1, "population": 4}
    schedule |= {"seed": 0, "score": 0.5, "members": [1, 1], "values": columns}
    (tmp_path / "schedule.json").write_text(json.dumps(schedule))
    code, out, errors = rte("fit", "--schedule", "schedule.json", "--out", "run", cwd=tmp_path)
    assert code == 0, errors
    assert "elr on digits" in out
    assert errors == "rte: method.beta cannot change during a run; it is 0.8 throughout.\n"
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    steps = {"kind": "steps", "values": [0.01, 0.02], "epochs": [0, 1], "fractions": None}
    assert config["train"]["lr"] == steps
    assert config["method"]["beta"] == 0.8
    rates = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert {entry["lr"] for entry in rates if entry["event"] == "step"} == {0.01, 0.02}
