"""What methods are like, in figures: each compared with a count by hand."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console

from rte import registry
from rte.cli import main
from rte.report.profiles import EXAMPLES, Profile, profile, profiles
from rte.report.tables import methods


@pytest.mark.parametrize(
    ("name", "networks", "copies", "step", "size"),
    [
        ("ce", 1, 0, (1.0, 1.0), 0),
        ("rte", 1, 1, (11.33, 11.33), 0),  # x and 10 strong views, forward and backward, and the teacher's look at x
        ("co_teaching", 2, 0, (2.0, 2.0), 0),
        ("elr", 1, 0, (1.0, 1.0), 4 * 10),  # a distribution over 10 classes in single precision
        ("dividemix", 2, 0, (2.0, 2.67), 2 * (4 + 4)),  # of two networks: w, and the loss at the last split
    ],
)
def test_figures_are_those_counted_by_hand(
    name: str, networks: int, copies: int, step: tuple[float, float], size: float
) -> None:
    found = profile(name)
    assert (found.networks, found.copies) == (networks, copies)
    assert found.step == step
    assert found.bytes_per_example == size


def test_what_costs_the_same_in_every_step_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(*args: object, **rest: object) -> None:
        raise AssertionError("the fits of CleanNet made `rte list methods` wait for 40 seconds")

    monkeypatch.setattr("rte.methods.cleannet.agreement", too_long)
    assert profile("cleannet").step == (1.0, 1.0)


@pytest.mark.parametrize("name", registry.methods())
def test_every_method_has_a_profile(name: str) -> None:
    found = profile(name)
    assert found.networks >= 1
    assert 0 < found.step[0] <= found.step[1]
    assert 0 <= found.bytes_per_example < EXAMPLES
    assert found.needs == registry.method(name).needs
    assert found.summary
    assert not found.reproduced
    assert profile(name) == found


def shown(width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(*methods(profiles(), width), sep="\n", highlight=False)
    out = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(out, str)
    return out


def test_the_table_has_a_line_for_each_method_and_says_what_its_columns_are() -> None:
    wide = shown(250).splitlines()
    (line,) = (line for line in wide if line.startswith("dividemix"))
    for part in ("2 ", "2.0 to 2.7", "16", "Li et al., 2020", "no", "MixMatch"):
        assert part in line
    for name in registry.methods():
        assert sum(line.split()[:1] == [name] for line in wide) == 1
    assert "relative to ce" in " ".join(wide)
    narrow = shown(80)
    assert max(map(len, narrow.splitlines())) <= 80
    for name in registry.methods():
        assert f"\n{name}: " in f"\n{narrow}"
    assert "needs noise rate" in " ".join(narrow.split())


def test_the_list_is_there_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["rte", "list", "methods", "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    tree = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in tree["methods"]}
    assert rows.keys() >= set(registry.methods())
    assert rows["co_teaching"]["needs"] == ["noise rate"]
    assert rows["gce"]["paper"] == "Zhang & Sabuncu, 2018"
    assert isinstance(profile("gce"), Profile)
