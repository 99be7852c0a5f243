"""What Ray Tune is told, and what is made of its answers; no cluster is started."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rte.errors import TrainingError
from rte.search.definition import read_records
from rte.search.population import Population, Record
from rte.search.space import Range, Space

pytest.importorskip("ray")

from rte.search import conductor as subject
from rte.search.conductor import Brake, Chronicle, Conductor, last_line

SPACE: Space = {"train.lr": Range(0.0, 1.0)}


def conductor(folder: Path, gpus: float = 0.0, watch: Any = lambda: None, **rest: Any) -> Conductor:
    population = Population(SPACE, size=2, interval=1, epochs=2, seed=0, **rest)
    return Conductor(population, folder, "ab12", cpus=1.0, gpus=gpus, watch=watch)


def play(one: Conductor, scores: dict[tuple[int, int], float]) -> list[dict[str, Any]]:
    """Answer every trial with its scripted score; returns the trials."""
    trials: list[dict[str, Any]] = []
    while (trial := one.suggest(f"t{len(trials)}")) != "FINISHED":
        assert isinstance(trial, dict)
        trials.append(trial)
        score = scores[trial["member"], trial["until"]]
        one.on_trial_complete(f"t{len(trials) - 1}", {"score": score, "seconds": 2.0, "done": True})
    return trials


def test_a_trial_is_an_interval(tmp_path: Path) -> None:
    watched: list[int] = []
    one = conductor(tmp_path, watch=lambda: watched.append(one.population.done))
    trials = play(one, {(0, 1): 0.1, (1, 1): 0.9, (0, 2): 0.8, (1, 2): 0.7})
    assert [(t["member"], t["until"], t["parent"], t["source"]) for t in trials] == [
        (0, 1, 0, None),
        (1, 1, 1, None),
        (0, 2, 1, "members/001/epoch-0001-ab12"),
        (1, 2, 1, "members/001/epoch-0001-ab12"),
    ]
    assert all(t["device"] == "cpu" and t["folder"] == str(tmp_path) for t in trials)
    records = read_records(tmp_path)
    assert [(r.member, r.until, r.score, r.seconds) for r in records] == [
        (0, 1, 0.1, 2.0),
        (1, 1, 0.9, 2.0),
        (0, 2, 0.8, 2.0),
        (1, 2, 0.7, 2.0),
    ]
    assert one.problem is None
    assert watched[-1] == 4


def test_nothing_starts_while_others_are_awaited(tmp_path: Path) -> None:
    one = conductor(tmp_path)
    one.suggest("a")
    one.suggest("b")
    assert one.suggest("c") is None
    one.on_trial_complete("a", {"score": 0.5})
    assert one.suggest("c") is None
    one.on_trial_complete("b", {"score": 0.4})
    assert one.suggest("c") is not None


def test_a_search_goes_on_from_its_records(tmp_path: Path) -> None:
    known = [Record(m, 0, 1, m, {"train.lr": 0.5}, 0.5 - m / 10, f"members/{m}") for m in (0, 1)]
    trial = conductor(tmp_path, gpus=0.5, records=known).suggest("a")
    assert isinstance(trial, dict)
    assert (trial["until"], trial["source"], trial["device"]) == (2, "members/0", None)


def test_diverged_members_are_taken_down_without_a_score(tmp_path: Path) -> None:
    one = conductor(tmp_path)
    one.suggest("a")
    one.on_trial_complete("a", {"diverged": "step 3: the loss is nan"})
    assert [r.score for r in read_records(tmp_path)] == [None]
    one.suggest("b")
    one.on_trial_complete("b", {"diverged": "step 4"})
    assert not Brake(one).stop_all()
    assert one.suggest("c") is None
    assert "every member" in str(one.problem)
    assert Brake(one).stop_all()


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ({"result": {"problem": "the data is gone; restore it."}}, "the data is gone"),
        ({"error": True}, "member 0 failed 6 times between epochs 0 and 1 (OSError: out of luck)"),
        ({"result": None}, "rte tune --resume"),
    ],
)
def test_what_cannot_go_on_is_said_once_and_stops_everything(tmp_path: Path, answer: dict[str, Any], part: str) -> None:
    (tmp_path / "error.txt").write_text("Traceback\n  ...\nOSError: out of luck\n\n")
    one = conductor(tmp_path)
    one.suggest("a")
    one.suggest("b")
    failed = SimpleNamespace(trial_id="a", error_file=str(tmp_path / "error.txt"))
    Chronicle(one).on_trial_recover(0, [], failed)
    one.on_trial_complete("a", **answer)
    assert part in str(one.problem)
    assert Brake(one).stop_all()
    one.on_trial_complete("b", {"score": 0.5})
    assert part in str(one.problem)
    assert read_records(tmp_path) == []
    assert one.suggest("c") is None


def test_a_full_disk_stops_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path, record: Record) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(subject, "append_record", full)
    one = conductor(tmp_path)
    one.suggest("a")
    one.on_trial_complete("a", {"score": 0.5})
    assert "No space left on device" in str(one.problem)
    assert one.population.done == 0


def test_a_cluster_without_hosts_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [{"Alive": True}, {"Alive": False}]
    monkeypatch.setattr(subject.ray, "nodes", lambda: hosts)
    brake = Brake(conductor(tmp_path))
    hosts.pop(0)
    assert not brake.stop_all()  # it looks only now and then
    monkeypatch.setattr(subject, "PATIENCE", -1.0)
    with pytest.raises(TrainingError, match="lost its last host"):
        brake.stop_all()
    hosts.append({"Alive": True})
    assert not brake.stop_all()


def test_ray_gets_nothing_of_ours_to_pickle(tmp_path: Path) -> None:
    one = conductor(tmp_path, watch=lambda: None)  # a lambda cannot be pickled
    assert vars(pickle.loads(pickle.dumps(one))) == {}
    assert vars(pickle.loads(pickle.dumps(Brake(one)))) == {}
    assert vars(pickle.loads(pickle.dumps(Chronicle(one)))) == {}
    one.save(str(tmp_path / "searcher.pkl"))
    assert list(tmp_path.iterdir()) == []


def test_a_cause_is_short(tmp_path: Path) -> None:
    (tmp_path / "error.txt").write_text("Traceback\n" + "word " * 100)
    assert len(last_line(str(tmp_path / "error.txt"))) <= 120
    assert last_line(None) == last_line(str(tmp_path / "none")) == "for a reason unknown"
