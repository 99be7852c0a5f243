from __future__ import annotations

import math
from pathlib import Path

import pytest
from conftest import quick
from test_train_trainer import trainer

from rte.train.journal import Journal, read


def test_events_can_be_read_while_the_journal_is_open(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.write("step", step=1, loss=0.5)
    journal.write("epoch", epoch=1, test={"top1": 0.25, "nll": math.nan})
    assert read(path) == [
        {"event": "step", "step": 1, "loss": 0.5},
        {"event": "epoch", "epoch": 1, "test": {"top1": 0.25, "nll": None}},
    ]
    assert [entry["event"] for entry in read(path, "epoch")] == ["epoch"]
    journal.close()


def test_rewinding_forgets_later_events_and_half_written_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.write("step", step=1)
    position = journal.position
    journal.write("step", step=2)
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"event": "st')  # a kill in the middle of a line
    assert [entry["step"] for entry in read(path)] == [1, 2]
    again = Journal(path)
    again.rewind(position)
    again.write("step", step=3)
    again.close()
    assert [entry["step"] for entry in read(path)] == [1, 3]


@pytest.mark.parametrize("lost", [b"", b"\0" * 30], ids=["cut", "filled with zeros"])
def test_a_journal_shorter_than_the_checkpoint_says_goes_on_after_its_last_whole_line(
    tmp_path: Path, lost: bytes
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    for step in range(5):
        journal.write("step", step=step)
    position = journal.position
    journal.close()
    written = path.read_bytes()
    path.write_bytes(written[: len(written) // 2 - 40] + b'{"eve' + lost)  # what a power cut may leave
    again = Journal(path)
    again.rewind(position)
    again.write("step", step=5)
    again.close()
    assert [entry["step"] for entry in read(path)] == [0, 5]
    assert b"\0" not in path.read_bytes()


def test_the_journal_is_on_the_disk_before_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    made = trainer(quick("ce", train={"epochs": 1}))
    monkeypatch.setattr(made.journal, "sync", lambda: order.append("journal"))
    monkeypatch.setattr(made, "save", lambda name, state: order.append(name))
    made.fit()
    assert order == ["journal", "checkpoint"]
