"""Event files hold what the journal holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tiny import at

from rte.errors import UserError
from rte.report.events import FOLDER, EventFiles, Watchers
from rte.train.trainer import Scores


def test_terms_and_scores_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from tensorboardX.event_file_writer import EventFileWriter  # noqa: F401
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter  # noqa: F401

    events = EventFiles(tmp_path)
    assert not (tmp_path / FOLDER).exists()  # not before the run folder is there
    for step in range(45):
        events.step(at(step=step), {"loss": float(step)})
    events.epoch(1, {"test": {"top1": 0.5}})
    events.close()
    data = next((tmp_path / FOLDER).iterdir()).read_bytes()
    seen, place = [], 0
    while place < len(data):  # records of: length (8), its checksum (4), the event, its checksum (4)
        size = int.from_bytes(data[place : place + 8], "little")
        event = Event.FromString(data[place + 12 : place + 12 + size])
        seen += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
        place += size + 16
    expected = [("train/loss", 0, 0.0), ("train/loss", 20, 20.0), ("train/loss", 40, 40.0), ("test/top1", 45, 0.5)]
    assert seen == expected


def test_several_watch_alike() -> None:
    class Counting:
        def __init__(self) -> None:
            self.seen: list[object] = []

        def step(self, t: object, terms: dict[str, float]) -> None:
            self.seen.append(terms)

        def epoch(self, epoch: int, scores: Scores) -> None:
            self.seen.append(epoch)

    both = [Counting(), Counting()]
    Watchers(both).step(at(), {"loss": 1.0})
    Watchers(both).epoch(3, {})
    assert [each.seen for each in both] == [[{"loss": 1.0}, 3]] * 2


def test_without_the_package_it_is_said_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setattr("rte.report.events.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs tensorboardX; install it"):
        EventFiles(tmp_path)
