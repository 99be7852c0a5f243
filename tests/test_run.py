"""Run folders: what they hold, that they can be gone on with after a kill, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick

from rte import __version__
from rte.config import digest
from rte.errors import CheckpointError, ConfigError, NoiseError, UserError
from rte.files import write_json
from rte.noise.inject import Manifest, rebuild
from rte.run.build import load_dataset, prepare
from rte.run.folder import evaluate, held, load_method, read_config, reopen
from rte.run.start import resume, start
from rte.train import checkpoint
from rte.train.journal import read


def test_a_run_folder_tells_the_whole_story(tmp_path: Path) -> None:
    config = quick("rte", train={"holdout": 0.1})
    result = start(config, tmp_path / "run")
    folder = tmp_path / "run"
    assert read_config(folder) == config
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["rte"] == __version__
    assert environment["torch"] == torch.__version__
    assert json.loads((folder / "result.json").read_text()) == result
    assert result["noise"]["asked"] == 0.4
    assert result["noise"]["measured"] == pytest.approx(0.4, abs=1e-3)
    for name in ("test", "student", "val"):
        assert {"top1", "top5", "nll", "ece", "last", "last5", "best"} <= result[name].keys()
    assert result["selected"].keys() == {"epoch", "val", "test"}
    assert 0 <= result["memorisation"]["memorised"] <= 1

    events = read(folder / "journal.jsonl")
    assert {event["event"] for event in events} == {"step", "epoch"}
    assert {"loss", "task", "jsd", "ecr", "q", "lr"} <= next(e for e in events if e["event"] == "step").keys()
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [1, 2]

    manifest = Manifest.from_json((folder / "noise.json").read_text())
    clean = load_dataset(config, None).train.y
    noisy = prepare(config, load_dataset(config, None)).dataset.train.y
    np.testing.assert_array_equal(rebuild(manifest, clean), noisy)


def test_evaluating_a_finished_run_gives_the_same_numbers(tmp_path: Path) -> None:
    result = start(quick("rte"), tmp_path / "run")
    again = evaluate(tmp_path / "run")
    assert again["test"] == {name: result["test"][name] for name in again["test"]}
    assert again["memorisation"] == result["memorisation"]


def test_a_reopened_method_knows_the_labels_it_was_given(tmp_path: Path) -> None:
    config = quick("ce", train={"holdout": 0.1, "epochs": 1})
    start(config, tmp_path / "run")
    method, examiner = reopen(tmp_path / "run")
    given = examiner.dataset.train.y[examiner.train_rows]
    np.testing.assert_array_equal(method.y.cpu().numpy(), given)
    sure = torch.nn.functional.one_hot(torch.from_numpy(given), 10) * 50.0
    torch.testing.assert_close(method.trust(lambda predict: sure), torch.ones(len(given)))


def test_an_existing_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("x")
    with pytest.raises(CheckpointError, match="exists already"):
        start(quick("ce"), tmp_path / "run")
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["precious"]


def test_a_batch_larger_than_the_set_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.batch = 5000 is larger .* 1297"):
        start(quick("ce", train={"batch": 5000}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_share_of_the_examples_is_as_noisy_and_as_balanced_as_all() -> None:
    config = quick("ce", train={"examples": 600, "holdout": 0.25})
    prepared = prepare(config, load_dataset(config, None))
    train, held, y = prepared.train_rows, prepared.val_rows, prepared.dataset.train.y
    assert (len(train), len(held), prepared.spec.n) == (450, 150, 450)
    np.testing.assert_array_equal(np.union1d(train, held), np.arange(600))
    whole = load_dataset(config, None)
    drawn = [np.bincount(labels, minlength=10) for labels in (prepared.dataset.y_true, whole.y_true)]
    np.testing.assert_allclose(drawn[0] / drawn[1], 600 / len(whole.train), atol=0.01)
    assert (y != prepared.dataset.y_true)[train].mean() == pytest.approx(0.4, abs=0.05)
    assert (y != prepared.dataset.y_true).sum() == 240, "the share that was asked for, of those that were drawn"
    other = prepare(quick("ce", train={"examples": 600}, seed=1), whole)
    kept = [one.dataset.train.images.rows for one in (prepared, other)]  # type: ignore[attr-defined]
    assert len(np.intersect1d(*kept)) < 400, "another seed draws others"
    everything = prepare(quick("ce", train={"examples": 5000}), whole)
    np.testing.assert_array_equal(everything.train_rows, np.arange(len(whole.train)))


def test_resume_refuses_what_does_not_belong_together(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no run folder"):
        resume(tmp_path)
    folder = tmp_path / "run"
    config = quick("ce")
    start(config, folder)
    write_json(folder / "config.json", quick("ce", train={"epochs": 3}).tree())
    with pytest.raises(CheckpointError, match="other settings"):
        resume(folder)
    write_json(folder / "config.json", config.tree())
    manifest = json.loads((folder / "noise.json").read_text())
    write_json(folder / "noise.json", {**manifest, "given_sha256": "0" * 64})
    with pytest.raises(CheckpointError, match="has changed since the run began"):
        resume(folder)


def test_a_run_of_an_earlier_version_with_fewer_settings_goes_on(tmp_path: Path) -> None:
    config, folder = quick("rte", train={"epochs": 1}), tmp_path / "run"
    start(config, folder)
    tree = config.tree()
    del tree["method"]["jsd_pair"]
    write_json(folder / "config.json", tree)
    state = checkpoint.load(folder / "checkpoint.pt")
    checkpoint.save(folder / "checkpoint.pt", {**state, "digest": digest(tree)})
    assert resume(folder)["digest"] == config.digest
    tree["train"]["epochs"] = 2
    write_json(folder / "config.json", tree)
    with pytest.raises(CheckpointError, match="belongs to other settings"):
        resume(folder)


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    result = start(quick("ce"), tmp_path / "run")
    again = resume(tmp_path / "run")
    assert again == result


@pytest.mark.parametrize("method", ["rte", "dividemix"])
def test_kill_nine_at_any_moment_costs_nothing_but_time(method: str, tmp_path: Path) -> None:
    config = quick(method, train={"epochs": 3, "batch": 64, "checkpoint_minutes": 1e-9})
    write_json(tmp_path / "config.json", config.tree())
    straight = start(config, tmp_path / "straight")

    folder = tmp_path / "killed"
    code = (
        "import sys; from pathlib import Path; from rte.run.start import resume, start; from rte.config import resolve;"
        "import torch; torch.set_num_threads(1); folder = Path(sys.argv[1]);"
        "resume(folder) if folder.exists() else start(resolve(sys.argv[2]), folder)"
    )
    rng, kills = np.random.default_rng(0), 0
    for attempt in range(40):
        process = subprocess.Popen([sys.executable, "-c", code, str(folder), str(tmp_path / "config.json")])
        while process.poll() is None and not (folder / "checkpoint.pt").exists():
            time.sleep(0.01)
        if attempt < 3:
            time.sleep(float(rng.uniform(0.5, 2.5)))
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        elif process.wait() == 0:
            break
    assert kills > 0
    a, b = (checkpoint.load(tmp_path / name / "checkpoint.pt") for name in ("straight", "killed"))
    assert all(torch.equal(a["method"][key], b["method"][key]) for key in a["method"])
    result = json.loads((folder / "result.json").read_text())
    for key in straight:
        if key not in ("train_seconds", "memory"):
            assert result[key] == straight[key]
    strip = [{k: v for k, v in event.items() if k != "seconds"} for event in read(folder / "journal.jsonl")]
    assert strip == [
        {k: v for k, v in event.items() if k != "seconds"} for event in read(tmp_path / "straight/journal.jsonl")
    ]


def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path: Path) -> None:
    config = quick("ce")
    straight = start(config, tmp_path / "straight")
    start(config, tmp_path / "early")
    os.unlink(tmp_path / "early" / "checkpoint.pt")
    assert resume(tmp_path / "early")["test"] == straight["test"]


@pytest.mark.parametrize("ratio", [0.4, 0.6])
def test_the_noise_of_a_part_of_the_examples_is_exact_and_recorded(ratio: float, tmp_path: Path) -> None:
    noise = {"name": "symmetric", "ratio": ratio}
    result = start(quick("ce", noise=noise, train={"examples": 505, "batch": 64, "epochs": 1}), tmp_path / "run")
    assert result["noise"]["measured"] == result["noise"]["trained"] == round(ratio * 505) / 505
    held = quick("ce", noise=noise, train={"examples": 505, "batch": 64, "epochs": 1, "holdout": 0.3})
    prepared = prepare(held, load_dataset(held, None))
    trained = prepared.dataset.train.y[prepared.train_rows] != prepared.dataset.y_true[prepared.train_rows]
    assert start(held, tmp_path / "held")["noise"]["trained"] == trained.mean()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    start(quick("ce", train={"epochs": 1}), folder)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_run_whose_settings_were_edited_is_not_evaluated(copy: Path) -> None:
    write_json(copy / "config.json", quick("ce", train={"epochs": 1}, net={"dropout": 0.1}).tree())
    for use in (evaluate, reopen):
        with pytest.raises(CheckpointError, match=r"checkpoint\.pt belongs to other settings than config\.json"):
            use(copy)
    with pytest.raises(CheckpointError, match="belongs to other settings"):
        load_method(copy, torch.device("cpu"))


def test_a_run_is_not_evaluated_on_other_data(copy: Path) -> None:
    manifest = json.loads((copy / "noise.json").read_text())
    write_json(copy / "noise.json", {**manifest, "given_sha256": "0" * 64})
    with pytest.raises(CheckpointError, match="has changed since the run began"):
        evaluate(copy)


def test_a_run_of_another_machine_s_device_is_evaluated_on_this_one_s(finished: Path, copy: Path) -> None:
    config = read_config(copy).with_train(device="cuda:7")
    write_json(copy / "config.json", config.tree())
    state = checkpoint.load(copy / "checkpoint.pt")
    checkpoint.save(copy / "checkpoint.pt", {**state, "digest": config.digest})
    assert evaluate(copy) == evaluate(finished)


@pytest.mark.parametrize(
    "change",
    [
        [1, 2],
        "text",
        {},
        {"classes": []},
        {"channels": "1"},
        {"channels": 0},
        {"size": [8]},
        {"mean": [0.1, 0.2]},
        {"n": None},
        {"std": [float("nan")]},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["input.json", "task.json"])
def test_an_odd_description_of_the_images_is_one_sentence(change: Any, name: str, copy: Path) -> None:
    spec = json.loads((copy / "input.json").read_text())
    (copy / "input.json").unlink()
    (copy / name).write_text(json.dumps({**spec, **change} if isinstance(change, dict) and change else change))
    with pytest.raises(CheckpointError, match=rf"{name} does not describe the inputs of a run .*; restore it\.$"):
        load_method(copy, torch.device("cpu"))


@pytest.mark.parametrize("change", [{"method": {}}, {"method": 3}, {"method": None}, {"epoch": 1}], ids=str)
def test_a_checkpoint_of_another_shape_is_one_sentence(change: dict[str, Any], copy: Path) -> None:
    state = checkpoint.load(copy / "checkpoint.pt")
    if "epoch" in change:
        del state["optimizer"]
    checkpoint.save(copy / "checkpoint.pt", {**state, **change})
    for use in (evaluate, resume)[len(change.keys() & {"epoch"}) :]:
        with pytest.raises(CheckpointError, match=r"does not fit the run that config\.json") as e:
            use(copy)
        assert "\n" not in str(e.value)


def test_a_checkpoint_is_asked_for_by_its_name(finished: Path) -> None:
    with pytest.raises(ConfigError, match="--which last: choose one of: checkpoint, selected"):
        evaluate(finished, which="last")
    with pytest.raises(CheckpointError, match=r"has no selected\.pt, as nothing was held out"):
        evaluate(finished, which="selected")


def test_a_folder_that_cannot_be_made_is_refused_before_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="file is a file"):
        start(quick("ce", data={"name": "arrays", "path": "nowhere.npz"}), tmp_path / "file" / "run")


def test_two_processes_do_not_write_to_one_run(copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.iterdir()}
    with held(copy), pytest.raises(UserError, match=r"another process is working on .*run; wait for it"):
        resume(copy)
    after = {path: path.stat().st_mtime_ns for path in copy.iterdir()}
    assert after == before
    resume(copy)


def test_what_is_wrong_in_a_file_is_said_with_its_name(copy: Path) -> None:
    tree = json.loads((copy / "config.json").read_text())
    write_json(copy / "config.json", {**tree, "train": {**tree["train"], "epochs": 0}})
    with pytest.raises(ConfigError, match=r"run/config\.json: train\.epochs = 0: "):
        evaluate(copy)
    write_json(copy / "config.json", tree)
    write_json(copy / "noise.json", [3])
    with pytest.raises(NoiseError, match=r"run/noise\.json: this is no noise manifest"):
        resume(copy)
