"""A run is audited: what training saw is used, other splits too, and what follows is written beside the run."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import quick

from rte.audit import read
from rte.data.types import ArrayImages
from rte.errors import UserError
from rte.run.audit import audit_run, remembered
from rte.run.build import load_dataset, prepare
from rte.run.folder import read_config
from rte.run.review import Wish, fulfil
from rte.run.start import start
from rte.run.twins import conflicting


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    torch.set_num_threads(1)
    start(quick("ce", train={"epochs": 4}), folder)
    return folder


def test_the_audit_finds_wrong_labels_and_says_what_it_goes_by(run: Path) -> None:
    found = audit_run(run)
    assert remembered(run) is not None
    assert found.summary["scores"]["from"] == ["prediction", "margins seen in training"]
    assert found.summary["noise"]["low"] <= found.summary["noise"]["rate"] <= found.summary["noise"]["high"]
    config = read_config(run)
    data = prepare(config, load_dataset(config, None)).dataset
    assert data.y_true is not None
    wrong = (data.y_true != data.train.y)[found.rows.index]
    n = int(wrong.sum())
    assert wrong[:n].mean() > 0.8
    right = found.rows.predicted_label[:n][wrong[:n]] == data.y_true[found.rows.index[:n]][wrong[:n]]
    assert right.mean() > 0.6


def test_the_test_split_has_an_audit_of_its_own(run: Path) -> None:
    wish = Wish(run, on="test", export="cleanlab")
    found, said = fulfil(audit_run(run, on="test"), wish)
    found.write(run, wish.stem)
    assert (run / "audit-test.csv").is_file()
    assert found.summary["scores"]["from"] == ["prediction"]
    assert found.summary["noise"]["low"] == pytest.approx(0.0, abs=0.03)
    assert (run / "cleanlab.csv").is_file()
    assert said


def test_reviewed_and_applied(run: Path, tmp_path: Path) -> None:
    found = audit_run(run)
    with (tmp_path / "decisions.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["index", "id", "given_label", "decision", "label"])
        for k in range(60):
            row, name = found.rows, found.classes
            out.writerow([row.index[k], row.id[k], "", "accept", name[row.predicted_label[k]]])
    wish = Wish(run, apply="review", reviewed=tmp_path / "decisions.csv", to=tmp_path / "labels.csv")
    wish.check()
    after, said = fulfil(found, wish)
    assert after.summary["review"]["decisions"] == 60
    assert after.summary["noise"]["rate"] != after.summary["estimated"]["rate"]
    assert any("60 of them changed" in line for line in said)
    after.write(run)
    again = read(run)
    assert len(again.rows.reviewed) == 60
    assert set(again.rows.index[-60:]) == set(found.rows.index[:60])
    with pytest.raises(UserError, match="exists already"):
        wish.check()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"apply": "dorp"}, "drop"),
        ({"apply": "review"}, "needs --reviewed"),
        ({"threshold": 0.5}, "for --apply drop"),
        ({"apply": "drop", "threshold": 2.0}, "from 0 to 1"),
        ({"export": "excel"}, "--export excel"),
        ({"to": Path("x.csv")}, "give --apply"),
        ({"reviewed": Path("nowhere.csv")}, "there is no file"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(wish: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        Wish(tmp_path, **wish).check()  # type: ignore[arg-type]


def test_copies_with_another_label_are_found() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 4, 4, 3), np.uint8)
    pixels[4], pixels[5] = pixels[1], pixels[2]
    y = np.array([0, 1, 2, 0, 0, 2])
    assert conflicting(ArrayImages(pixels), y) == {4: 1, 1: 4}
