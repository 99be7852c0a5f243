"""The commands as a user calls them: what they print, and one sentence with exit code 2 for a mistake."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from rte.cli import main

QUICK = ["--epochs", "1", "--set", "train.batch=256"]


def rte(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = (
        {key: value for key, value in os.environ.items() if key != "RTE_DATA"} | {"COLUMNS": "160"} | (env or {})
    )
    command = [sys.executable, "-m", "rte", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    done = rte("fit", "digits", *QUICK, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "run folder is run" in done.stdout
    assert "memorised" in done.stdout
    return folder / "run"


def test_fit_evaluate_predict(trained: Path) -> None:
    scored = rte("evaluate", "run", "--json", "scores.json", cwd=trained.parent)
    assert scored.returncode == 0, scored.stderr
    assert "top-1" in scored.stdout
    assert "student" in scored.stdout
    assert (trained.parent / "scores.json").exists()

    broken = rte("evaluate", "run", "--corruptions", "--json", "scores.json", "--overwrite", cwd=trained.parent)
    assert broken.returncode == 0, broken.stderr
    assert "mean corruption error" in broken.stdout
    found = json.loads((trained.parent / "scores.json").read_text())["corruptions"]
    assert len(found["errors"]) == 15
    assert found["mce"] == pytest.approx(np.mean(list(found["errors"].values())))

    digits = load_digits()
    images = (digits.images[:20] / 16 * 255).astype(np.uint8)
    np.savez(trained.parent / "new.npz", x=images)
    predicted = rte("predict", "run", "new.npz", "--out", "out.csv", "--probabilities", cwd=trained.parent)
    assert predicted.returncode == 0, predicted.stderr
    with (trained.parent / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert all(row["label"] in set("0123456789") for row in rows)
    assert sum(float(rows[0][str(k)]) for k in range(10)) == pytest.approx(1, abs=1e-5)

    (trained.parent / "pictures").mkdir()
    for i in range(3):
        Image.fromarray(images[i]).save(trained.parent / "pictures" / f"{i}.png")
    shown = rte("predict", "run", "pictures", cwd=trained.parent)
    assert shown.returncode == 0, shown.stderr
    assert [line.split(",")[1] for line in shown.stdout.splitlines()[1:]] == [row["label"] for row in rows[:3]]


def test_compare_prints_one_table_and_the_folders(tmp_path: Path) -> None:
    done = rte("compare", "digits", *QUICK, "--methods", "ce,gce,rte", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("ce", "gce", "rte", "memorised", "% of the labels are wrong", "one seed"):
        assert part in done.stdout
    folder = next((tmp_path / "runs").iterdir())
    assert {"ce-s0", "gce-s0", "rte-s0", "comparison.md", "comparison.png"} <= {path.name for path in folder.iterdir()}
    again = rte("resume", str(folder), cwd=tmp_path)  # nothing is left to train: the same table once more
    assert again.returncode == 0, again.stderr
    assert (
        again.stdout.split("digits, ")[1].split("The run folders")[0]
        == done.stdout.split("digits, ")[1].split("The run folders")[0]
    )


def test_a_signal_saves_and_resume_finishes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rte", "fit", "digits", "--epochs", "200", "--out", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run" / "checkpoint.pt").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "rte resume run" in errors
    assert "Traceback" not in errors
    # finish sooner than 200 epochs: the journal shows that it goes on, not that it starts over
    lines = (tmp_path / "run" / "journal.jsonl").read_text().count("\n")
    second = subprocess.Popen([sys.executable, "-m", "rte", "resume", "run"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while (tmp_path / "run" / "journal.jsonl").read_text().count("\n") < lines + 5:
        assert second.poll() is None
        time.sleep(0.05)
    second.send_signal(signal.SIGTERM)
    assert second.wait(timeout=60) == 130


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["fit", "digit"], ["'digit'", "did you mean 'digits'"]),
        (["fit", "digits", "--method", "rtee"], ["'rtee'", "did you mean 'rte'"]),
        (["fit", "digits", "--net", "wrn-28"], ["'wrn-28'"]),
        (["fit", "digits", "--preset", "digts"], ["did you mean 'digits'"]),
        (["fit", "digits", "--set", "method.qq=1"], ["method.qq", "did you mean 'q'"]),
        (["fit", "digits", "--noise", "symetric:0.4"], ["did you mean 'symmetric'"]),
        (["fit", "digits", "--noise", "symmetric:40"], ["between 0 and 1"]),
        (["fit", "digits", "--noise", "patrini-cifar100:0.4"], ["100 classes", "10"]),
        (["fit", "digits", "--set", "train.batch=9999"], ["train.batch", "1297"]),
        (["fit", "cifar10"], ["--data-dir", "RTE_DATA"]),
        (["fit", "cifar10", "--data-dir", "nowhere"], ["nowhere"]),
        (["fit", "missing.npz"], ["missing.npz"]),
        (["fit", "broken.npz"], ["broken.npz"]),
        (["fit", "folder:nowhere"], ["nowhere"]),
        (["fit", "table:nowhere.csv"], ["nowhere.csv"]),
        (["fit", "digits", "--out", "taken"], ["taken", "exists already", "--out"]),
        (["resume", "nowhere"], ["nowhere", "no run folder"]),
        (["evaluate", "taken"], ["taken", "no run folder"]),
        (["predict", "taken", "x.npz"], ["taken", "no run folder"]),
        (["list", "nothing"], ["nothing"]),
        (["data", "get", "mnist", "--to", "x"], ["mnist", "cifar10"]),
        (["fit", "digits", "--set", "train.device=tpu"], ["tpu"]),
        (["compare", "digits", "--methods", ""], ["--methods names no method", "ce,gce,rte"]),
        (["compare", "digits", "--methods", " , "], ["--methods names no method"]),
        (["compare", "digits", "--methods", "ce,gce,ce"], ["--methods names ce twice"]),
        (["compare", "digits", "--methods", "co-teaching,co_teaching"], ["names co_teaching twice"]),
        (["compare", "digits", "--methods", "ce,nope"], ["nope"]),
        (["fit", "digits", "--preset", ""], ["there is no preset ''"]),
        (["fit", "digits", "--budget", "1h30x"], ["1h30x", "1h30m"]),
        (["fit", "digits", "--budget", "99999999h"], ["longer than a year"]),
        (["fit", "digits", "--set", "views.size=100000"], ["views.size", "4096"]),
        (["fit", "digits", "--set", "train.lr.x=3"], ["train.lr.x"]),
        (["fit", "~nouser/x.npz"], ["the home folder of nobody"]),
        (["tune", "--resume", "odd"], ["tune.json does not describe a search"]),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_two(
    arguments: list[str],
    parts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not really")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "tune.json").write_text("[3]")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RTE_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["rte", *arguments])
    with pytest.raises(SystemExit) as stop:  # in this process: to start one takes longer than to find a mistake
        main()
    assert stop.value.code == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("rte: ")
    assert len(message.splitlines()) == 1
    for part in parts:
        assert part in message
    assert sorted(tmp_path.rglob("*")) == before


def call(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence that a command ends in, in this process."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["rte", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    found = capsys.readouterr()
    assert (stop.value.code, found.out.strip()) == (2, "")
    message = found.err.strip()
    assert message.startswith("rte: ")
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", "run", "--json", "FILE/x.json"], "the folder FILE is a file"),
        (["evaluate", "run", "--json", "missing/x.json"], "the folder missing does not exist"),
        (["evaluate", "run", "--json", "run"], "is a folder"),
        (["evaluate", "run", "--json", "FILE"], "exists already; choose another name, or add --overwrite"),
        (["evaluate", "run", "--which", "last"], "choose one of: checkpoint, selected"),
        (["evaluate", "run", "--official", "nowhere"], "nowhere is no folder"),
        (["predict", "run", "new.npz", "--out", "missing/o.csv"], "the folder missing does not exist"),
        (["predict", "run", "new.npz", "--out", "FILE"], "exists already; choose another name, or add --overwrite"),
        (["predict", "run", "new.npz", "--out", "FILE/o.csv"], "the folder FILE is a file"),
        (["predict", "run", "~nouser/new.npz"], "the home folder of nobody"),
        (["noise", "from-model", "run", "--out", "missing/C.csv"], "the folder missing does not exist"),
        (["noise", "from-model", "run", "--out", "FILE"], "a name that ends in .csv"),
        (["fit", "digits", "--out", "FILE/run"], "FILE is a file"),
        (["fit", "digits", "--out", 300 * "a"], "File name too long"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    arguments: list[str],
    words: str,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(trained.parent)
    Path("FILE").write_text("precious")
    np.savez("new.npz", x=np.zeros((2, 8, 8), np.uint8))
    before = {path: path.stat().st_mtime_ns for path in trained.parent.rglob("*")}
    assert words in call(arguments, monkeypatch, capsys)
    assert {path: path.stat().st_mtime_ns for path in trained.parent.rglob("*")} == before


def test_where_nothing_can_be_scored_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("only.npz", x=rng.integers(0, 255, (40, 8, 8)).astype(np.uint8), y=np.arange(40) % 4)
    monkeypatch.setattr(sys, "argv", ["rte", "fit", "only.npz", "-m", "ce", *QUICK[:2], "--set", "train.batch=8"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "Nothing was scored: there is no test split" in capsys.readouterr().out
    (run,) = Path("runs").iterdir()
    message = call(["evaluate", str(run)], monkeypatch, capsys)
    assert "no test split" in message
    assert "train.holdout=0.1" in message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "data/x"), "data/x: Permission denied"),
        (MemoryError(), "lower train.batch"),
        (torch.OutOfMemoryError("CUDA out of memory."), "lower train.batch"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"), "not enough"),
    ],
)
def test_what_the_machine_refuses_is_one_sentence(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("rte.report.catalogue.catalogue", fail)
    assert words in call(["list"], monkeypatch, capsys)


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("rte.report.catalogue.catalogue", fail)
    monkeypatch.setattr(sys, "argv", ["rte", "list"])
    with pytest.raises(RuntimeError, match="a fault"):
        main()


def test_predictions_keep_names_that_are_no_unicode(trained: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    try:
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / name)
    except OSError:
        pytest.skip("this file system takes names in Unicode only")
    done = rte("predict", str(trained), str(tmp_path / name), "--out", "o.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"caf\xe9.png," in (tmp_path / "o.csv").read_bytes()
    assert rte("predict", str(trained), str(tmp_path / name), cwd=tmp_path).returncode == 0


def test_a_mistake_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = rte("fit", "digits", "--set", "train.batch=9999", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("rte: train.batch")
    assert done.stderr.count("\n") == 1


def test_help_is_quick_and_complete(tmp_path: Path) -> None:
    rte("--help", cwd=tmp_path)
    times = []
    for _ in range(3):
        before = os.times()  # of a processor: a busy machine makes a program no slower than it is
        done = rte("--help", cwd=tmp_path)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(times) < 0.7
    for command in ("fit", "compare", "resume", "evaluate", "predict", "data", "list"):
        assert command in done.stdout


def test_list_names_everything(tmp_path: Path) -> None:
    done = rte("list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("dividemix", "cifar100", "wrn-28-6", "compact", "digits", "symmetric-inclusive"):
        assert name in done.stdout


def test_compare_refuses_a_taken_folder_before_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "both" / "gce").mkdir(parents=True)
    message = call(["compare", "digits", "--methods", "ce,gce", "--out", "both", *QUICK], monkeypatch, capsys)
    assert "both exists already" in message
    assert not (tmp_path / "both" / "ce").exists()
