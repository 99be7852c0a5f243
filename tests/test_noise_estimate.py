"""From a classifier's mistakes to a file of noise, and back into the noise model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rte.cli import app
from rte.config import resolve
from rte.errors import ConfigError, DataError, NoiseError, UserError
from rte.noise import tables
from rte.noise.config import NoiseConfig, parse_noise
from rte.noise.estimate import in_words, read_counts, refuse_matrix, structure, write_structure
from rte.noise.inject import build_model
from rte.noise.matrix import NoiseModel

COUNTS = np.array([[90, 8, 2], [0, 50, 0], [1, 3, 96]])
C = [[0, 0.8, 0.2], [0, 0, 0], [0.25, 0.75, 0]]

PAPER = (101, 34, 149, 258, 132, 216, 56, 71, 63, 76)
"""The number of mistakes in each class that the printed rows of the paper's matrix are fractions of."""


def test_the_diagonal_is_dropped_and_rows_are_divided_by_their_sums() -> None:
    assert_allclose(structure(COUNTS), C)


def test_whole_counts_give_the_matrix_of_the_paper() -> None:
    counts = np.rint(np.array(tables.CONFUSION_CIFAR10) * np.array(PAPER)[:, None])
    assert_array_equal(counts.sum(1), PAPER)
    assert_allclose(structure(counts + np.diag(1000.0 - counts.sum(1))), tables.CONFUSION_CIFAR10, atol=5.1e-5)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".npz"])
def test_a_written_matrix_is_read_as_noise_to_the_last_bit(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 100, (7, 7))
    counts[3] = 0
    path = tmp_path / f"C{suffix}"
    written = write_structure(path, counts, [f"class {k}" for k in range(7)])
    model = build_model(NoiseConfig(**parse_noise(f"matrix:{path}:0.4")), 7)
    assert_array_equal(model.C, written)
    assert_array_equal(model.P, [0.4, 0.4, 0.4, 0, 0.4, 0.4, 0.4])
    assert model.C[0, 1] == counts[0, 1] / (counts[0].sum() - counts[0, 0])
    if suffix != ".csv":
        assert_array_equal(read_counts(path), counts)


def test_counts_are_read_from_a_plain_file(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "counts.csv", COUNTS, delimiter=",", fmt="%d")
    assert_array_equal(read_counts(tmp_path / "counts.csv"), COUNTS)
    np.savez(tmp_path / "two.npz", a=COUNTS, b=COUNTS)
    with pytest.raises(NoiseError, match="holds a, b; name the confusion matrix counts"):
        read_counts(tmp_path / "two.npz")
    (tmp_path / "flat.json").write_text("[[1, 2, 3], [4, 5, 6]]")
    with pytest.raises(NoiseError, match="must be square"):
        read_counts(tmp_path / "flat.json")
    with pytest.raises(DataError, match="there is no file"):
        read_counts(tmp_path / "none.csv")


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoiseError, match=r"ends in \.csv, \.json, \.npz"):
        write_structure(tmp_path / "C.xls", COUNTS)
    with pytest.raises(UserError, match="nowhere does not exist"):
        write_structure(tmp_path / "nowhere" / "C.csv", COUNTS)
    with pytest.raises(NoiseError, match="holds no mistakes"):
        write_structure(tmp_path / "C.csv", np.diag([5, 5, 5]))
    assert not list(tmp_path.iterdir())
    (tmp_path / "C.csv").write_text("0")
    with pytest.raises(UserError, match="exists already; choose another name, or add --overwrite"):
        refuse_matrix(tmp_path / "C.csv", overwrite=False)


def test_who_is_never_confused_is_said() -> None:
    assert in_words(COUNTS, ["cat", "dog", "owl"]) == [
        "14 of 250 were confused (5.60 %).",
        "Never confused, and so never corrupted: dog.",
    ]
    assert in_words([[1, 1], [1, 1]]) == ["2 of 4 were confused (50.00 %)."]


def run(*arguments: str) -> None:
    app([*arguments], standalone_mode=False)


def test_from_a_trained_run_to_noise_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    quick = ["--epochs", "1", "--set", "train.batch=256", "--method", "ce", "--noise", "none"]
    run("fit", "digits", *quick, "--out", folder)
    for on, examples in (("test", 500), ("train", 1297)):
        path = tmp_path / f"{on}.json"
        run("noise", "from-model", folder, "--out", str(path), "--on", on)
        assert f"--noise matrix:{path}:0.4" in capsys.readouterr().out
        held = json.loads(path.read_text())
        counts = np.array(held["counts"])
        assert counts.sum() == pytest.approx(examples, abs=5)
        assert len(held["classes"]) == 10
        assert_array_equal(NoiseModel.from_file(path, 0.4).C, structure(counts))
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    counts = np.array(json.loads((tmp_path / "test.json").read_text())["counts"])
    assert np.trace(counts) / counts.sum() == pytest.approx(result["test"]["top1"], abs=1e-6)
    np.savetxt(tmp_path / "counts.csv", counts, delimiter=",")
    run("noise", "from-confusion", str(tmp_path / "counts.csv"), "--out", str(tmp_path / "C.csv"))
    run("fit", "digits", *quick[:-1], f"matrix:{tmp_path / 'C.csv'}:0.4", "--out", str(tmp_path / "noisy"))
    measured = json.loads((tmp_path / "noisy" / "noise.json").read_text())
    assert measured["C"] is not None
    given = np.array(measured["counts"])
    assert not given[~np.eye(10, dtype=bool) & (structure(counts) == 0)].any()
    with pytest.raises(ConfigError, match="did you mean 'test'"):
        run("noise", "from-model", folder, "--out", str(tmp_path / "C.csv"), "--on", "tests")


def test_the_preset_is_the_shallow_network_on_clean_labels() -> None:
    config = resolve("confusion")
    assert (config.net.name, config.method_name, config.noise.name) == ("resnet10", "ce", "none")
    assert config.data_name == "cifar10"
