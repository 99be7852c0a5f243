"""Every command's help ends in examples, and they run as they are."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.main import get_command

from rte.cli import app, main
from rte.cli.examples import EXAMPLES

ALL = [line for lines in EXAMPLES.values() for line in lines]
LONG = ("cifar10", "photos", "list.csv", "customers.csv", "questions.csv", "rte tune", "rte reproduce main")
"""Of these only the words are tried: they need a download, somebody's files, Ray, or minutes."""
RUNNABLE = [line for line in ALL if not any(word in line for word in LONG)]


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", shlex.split(line.replace("--epochs 5", "--epochs 1")))
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def names(app: typer.Typer, group: str = "") -> set[str]:
    own = {f"{group} {c.name or c.callback.__name__}".strip() for c in app.registered_commands if c.callback}
    inner = (names(g.typer_instance, str(g.name)) for g in app.registered_groups if g.typer_instance)
    return own.union(*inner)


def test_every_command_has_examples_and_shows_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert names(app) == set(EXAMPLES)
    for name, lines in EXAMPLES.items():
        assert run(f"rte {name} --help", monkeypatch) == 0
        shown = capsys.readouterr().out
        for line in lines:
            assert line in shown


@pytest.mark.parametrize("line", ALL)
def test_the_words_of_an_example_are_known(line: str) -> None:
    command, arguments = get_command(app), shlex.split(line)[1:]
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    command.make_context("rte", arguments)


def test_the_examples_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("new.npz", x=np.zeros((2, 8, 8), np.uint8))
    np.savetxt("counts.csv", np.full((10, 10), 3) + 50 * np.eye(10, dtype=int), fmt="%d", delimiter=",")
    for line in RUNNABLE:
        assert run(line, monkeypatch) == 0, line
    for file in ("scores.json", "labels.csv", "mistakes.json", "mistakes.csv"):
        assert Path(file).is_file()
