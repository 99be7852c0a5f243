"""Every benchmark in its cheapest form, so that none of them falls behind the package."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import feeding
import precision
import pytest
import scaling
import step
import view_sheet
import views
from common import step_costs
from PIL import Image

NAMES = sorted(
    path.stem for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py") if "def main()" in path.read_text()
)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_how_it_is_called(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        import_module(name).main()
    assert end.value.code == 0
    assert f"python benchmarks/{name}.py" in capsys.readouterr().out


def test_waiting_for_views_is_timed() -> None:
    row = feeding.measure("compact-8", views=2, batch=8, steps=3)
    assert row["step_seconds"] > 0
    assert 0 <= row["waiting"] < 1
    assert row["views_share_of_cpu"] > 0


@pytest.mark.slow
def test_processes_and_threads_are_timed_by_turns() -> None:
    setting = {"net": "compact-8", "batch": 8, "views": 1, "total": scaling.WARM + 2}
    times = scaling.measure(rounds=1, steps=1, setting=setting)
    assert list(times) == list(scaling.TEAMS)
    assert all(seconds > 0 for row in times.values() for seconds in row)


def test_the_sheet_of_views_has_every_operation() -> None:
    shown = view_sheet.rows()
    assert [label for label, _ in shown if label] == [
        "AugMix's nine",
        "the other ones",
        "AugMix",
        *(variant.replace("-", "\n") for variant in view_sheet.VARIANTS),
    ]
    assert isinstance(view_sheet.sheet(), Image.Image)


def test_views_are_timed_beside_augmix_s_own_code() -> None:
    row = views.summary(views.measure(side=32, views=1, rounds=1, cores=1), cores=1)
    assert row["ratio core"] > 1


def test_a_step_of_rte_is_timed_against_its_floor(cifar: Path) -> None:
    row = step.measure("compact-8", strong=2, batch=8, rounds=2, data_dir=cifar)
    assert row["step_seconds"] > 0


def test_both_precisions_are_timed(cifar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "step_costs", partial(step_costs, rounds=1))
    assert set(precision.measure("compact-8", cifar)["seconds"]) == {"fp32", "bf16"}  # type: ignore[arg-type]
