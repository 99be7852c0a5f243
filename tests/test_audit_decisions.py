"""Decisions of people: read, counted, and made into a label file."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from test_audit_records import rows as some_rows

from rte.audit.decisions import (
    ACCEPT,
    HEADER,
    KEEP,
    NONE,
    RELABEL,
    UNSURE,
    Decision,
    corrected,
    expected,
    next_first,
    read_decisions,
    report,
)
from rte.audit.export import export
from rte.audit.fix import mended, write_labels
from rte.audit.records import Rows
from rte.errors import UserError

CLASSES = ["=1", "b", "c"]


def audited(n: int = 1000, rate: float = 0.3, seed: int = 0) -> tuple[Rows, np.ndarray]:
    """Rows in order of score, and which labels are wrong."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < rate
    score = np.where(wrong, rng.beta(1, 4, n), rng.beta(4, 1, n)).astype(np.float32)
    order = np.argsort(score)
    given = rng.integers(0, 3, n).astype(np.int32)
    base = some_rows([str(k) for k in range(n)])
    issue = np.arange(n) < 250
    made = {
        **{name: getattr(base, name) for name in base.__dataclass_fields__},
        "index": rng.permutation(n),
        "given_label": given,
        "predicted_label": ((given + 1) % 3).astype(np.int32),
        "label_score": score[order],
        "is_label_issue": issue,
        "reviewed": {},
    }
    return Rows(**made), wrong[order]


def write(path: Path, lines: list[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *lines])
    return path


def test_decisions_are_read_and_those_of_another_audit_refused(tmp_path: Path) -> None:
    rows, _ = audited(10)
    i = [int(k) for k in rows.index]
    good = [(i[0], "0", "b", ACCEPT, "'=1"), (i[1], "1", "b", KEEP, "b"), (i[2], "2", "b", NONE, "")]
    found = read_decisions(write(tmp_path / "d.csv", good), rows, CLASSES)
    assert found == {i[0]: Decision(ACCEPT, 0), i[1]: Decision(KEEP, 1), i[2]: Decision(NONE, -1)}
    for bad, words in (
        ((i[0], "0", "b", "maybe", ""), "line 2 .* decision 'maybe'"),
        ((i[0], "0", "b", RELABEL, "z"), "label 'z'"),
        ((99, "0", "b", KEEP, "b"), "index '99'"),
        ((i[0], "7", "b", KEEP, "b"), "of another audit"),
    ):
        with pytest.raises(UserError, match=words):
            read_decisions(write(tmp_path / "bad.csv", [bad]), rows, CLASSES)
    (tmp_path / "bad.csv").write_text("index,label\n")
    with pytest.raises(UserError, match="no column id"):
        read_decisions(tmp_path / "bad.csv", rows, CLASSES)


def decide(rows: Rows, wrong: np.ndarray, places: np.ndarray) -> dict[int, Decision]:
    label = np.where(wrong, rows.predicted_label, rows.given_label)
    return {int(rows.index[k]): Decision(ACCEPT if wrong[k] else KEEP, int(label[k])) for k in places}


def test_decisions_correct_a_wrong_estimate() -> None:
    inside, errors = [], []
    for seed in range(20):
        rows, wrong = audited(seed=seed)
        rng = np.random.default_rng(seed)
        decisions = decide(rows, wrong, rng.choice(1000, 200, replace=False))
        better = report(rows, decisions, (0.5, 0.3, 0.7))["noise"]
        assert isinstance(better, dict)
        inside.append(better["low"] <= wrong.mean() <= better["high"])
        errors.append(abs(better["rate"] - wrong.mean()))
    assert np.mean(errors) < 0.03
    assert np.mean(inside) >= 0.8


def test_few_decisions_correct_nothing_and_say_so() -> None:
    rows, wrong = audited()
    found = report(rows, decide(rows, wrong, np.arange(49)), (0.3, 0.2, 0.4))
    assert not found["enough"]
    assert "noise" not in found
    share = found["suspicion_right"]
    assert isinstance(share, dict)
    assert share["share"] == pytest.approx(wrong[:49].mean())
    assert share["low"] < share["share"] < share["high"] or share["share"] == 1.0


def test_tenths_nobody_looked_at_are_judged_by_their_scores_with_the_doubt_there_was() -> None:
    rows, wrong = audited()
    better = corrected(rows, np.arange(300), wrong[:300], (0.3, 0.2, 0.4))
    assert better["rate"] == pytest.approx(wrong.mean(), abs=0.1)
    assert better["low"] < better["rate"] - 0.02, "the doubt about the seven tenths is more than chance in the others"
    assert expected(rows, 0.3).mean() == pytest.approx(0.3, abs=1e-3)


def test_what_is_left_comes_first_and_refused_pairs_later() -> None:
    rows, _ = audited()
    decisions = {
        int(rows.index[k]): Decision(KEEP, int(rows.given_label[k])) for k in range(60) if rows.given_label[k] == 0
    }
    order = next_first(rows, decisions, 0.3)
    done = set(decisions)
    assert {int(rows.index[k]) for k in order[-len(done) :]} == done
    first = rows.given_label[order[:100]]
    assert (first == 0).mean() < (rows.given_label[:100] == 0).mean()


def test_mended_labels(tmp_path: Path) -> None:
    rows, _ = audited(300)
    i = [int(k) for k in rows.index]
    decisions = {
        i[0]: Decision(KEEP, int(rows.given_label[0])),
        i[1]: Decision(NONE, -1),
        i[2]: Decision(UNSURE, -1),
        i[299]: Decision(RELABEL, 2),
    }
    label, stays = mended(rows, "drop", decisions)
    assert stays.tolist() == [True] + [False] * 249 + [True] * 50
    assert label[299] == 2
    label, stays = mended(rows, "relabel", decisions, threshold=float(rows.label_score[10]))
    changed = label != rows.given_label
    assert changed[3:10].all()
    assert not changed[10:299].any()
    assert not changed[0]
    assert (~stays).sum() == 2
    label, stays = mended(rows, "review", decisions)
    assert (~stays).sum() == 2
    assert (label != rows.given_label).sum() <= 1
    write_labels(tmp_path / "labels.csv", rows, CLASSES, label, stays)
    with (tmp_path / "labels.csv").open() as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["id", "label"]
    assert len(lines) == 299
    assert {one[1] for one in lines[1:]} <= {"'=1", "b", "c"}


def test_exports(tmp_path: Path) -> None:
    rows, _ = audited(300)
    export(tmp_path / "c.csv", rows, CLASSES, "cleanlab")
    with (tmp_path / "c.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["id", "is_label_issue", "label_score", "given_label", "predicted_label"]
    assert len(lines) == 300
    export(tmp_path / "s.csv", rows, CLASSES, "csv")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 251
    export(tmp_path / "l.json", rows, CLASSES, "labelstudio")
    tasks = json.loads((tmp_path / "l.json").read_text())
    assert len(tasks) == 250
    assert tasks[0]["predictions"][0]["result"][0]["value"]["choices"] == [CLASSES[int(rows.predicted_label[0])]]
