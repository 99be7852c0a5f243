from __future__ import annotations

import math
from pathlib import Path

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
