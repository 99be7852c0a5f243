"""Runs that fit into a time: reading it, spending it, and that the outcome is an ordinary run."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from conftest import quick
from hypothesis import given
from hypothesis import strategies as st
from test_train_trainer import StopAfter, same, trainer

from rte import budget, nets
from rte.cli import compare
from rte.config import RunConfig
from rte.errors import ConfigError
from rte.files import read_json
from rte.methods.base import Progress
from rte.methods.ce import CrossEntropy
from rte.parts.schedules import Linear
from rte.run.budget import Meter, fit_budget, most, parse_budget, piloted, suitable, widest
from rte.run.build import Prepared, load_dataset, prepare
from rte.train.trainer import Interrupted, Trainer


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400), ("1h30m", 5400), (" 2H ", 7200)]
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "3 d", "-5m", "m", "1h-", "0s", "1e3s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--budget"):
        parse_budget(text)


@given(
    step=st.floats(0.001, 2),
    epoch=st.floats(0, 5),
    evaluation=st.floats(0, 20),
    seconds=st.floats(1, 5000),
    per_epoch=st.integers(1, 500),
    every=st.integers(1, 5),
)
def test_the_time_is_used_and_not_exceeded(
    step: float, epoch: float, evaluation: float, seconds: float, per_epoch: int, every: int
) -> None:
    def cost(steps: int) -> float:
        epochs = math.ceil(steps / per_epoch)
        return steps * step + epochs * epoch + math.ceil(epochs / every) * evaluation

    steps = most(cost, seconds)
    assert cost(steps) <= seconds < cost(steps + 1)


def watched(made: Trainer, what: Callable[[Any], int], monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """What the batches of its steps are like, from now on."""
    seen: set[int] = set()
    plain = made.method.step

    def step(batch: Any, t: Progress, update: Any) -> Any:
        seen.add(what(batch))
        return plain(batch, t, update)

    monkeypatch.setattr(made.method, "step", step)
    return seen


def test_each_number_of_views_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {"kind": "steps", "values": [0, 2, 4], "fractions": [0, 0.5, 0.75]}
    made = trainer(quick("rte", method={"views": views, "jsd_weight": 0.0}))
    seen = watched(made, lambda batch: batch.plan.strong, monkeypatch)
    meter = Meter(made)
    assert meter.evaluation > 0
    assert 0 < meter.seconds(20) < meter.seconds(40)
    assert seen == {0, 2, 4}
    seen.clear()
    meter.seconds(20)
    assert not seen  # known
    meter.forget()
    meter.seconds(20)
    assert seen == {0, 2, 4}


def test_each_resolution_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(quick("ce", train={"resolution": {"kind": "steps", "values": [0.5, 1.0], "fractions": [0, 0.9]}}))
    seen = watched(made, lambda batch: batch.views.shape[-1], monkeypatch)
    Meter(made).seconds(20)
    assert seen == {4, 8}


def test_views_that_come_with_some_epoch_count_in_runs_that_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {"kind": "steps", "values": [0, 6], "epochs": [0, 4]}
    made = trainer(quick("rte", method={"views": views, "jsd_weight": 0.0}))
    seen = watched(made, lambda batch: batch.plan.strong, monkeypatch)
    meter = Meter(made)
    monkeypatch.setattr(budget, "_timed", lambda trainer: (0.0, 1.0 + trainer.method.views(at(trainer)).strong))
    meter.evaluation = 0.0
    assert meter.seconds(20) == pytest.approx(20)
    assert meter.seconds(40) == pytest.approx(20 + 20 * 7, rel=0.02)
    assert most(meter.seconds, 20 + 10 * 7 + 3) == 30
    assert seen == {0}


def test_views_that_only_long_runs_have(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {"kind": "steps", "values": [0, 6], "fractions": [0.0, 0.5], "least": 8}
    made = trainer(quick("rte", method={"views": views, "jsd_weight": 0.0}))
    meter = Meter(made)
    monkeypatch.setattr(budget, "_timed", lambda trainer: (0.0, 1.0 + trainer.method.views(at(trainer)).strong))
    meter.evaluation = 0.0
    longest = 7 * meter.per_epoch  # of those without
    assert meter.seconds(longest) == pytest.approx(longest)
    assert meter.seconds(longest + 1) == pytest.approx(4 * (longest + 1), rel=0.02)
    assert most(meter.seconds, 2 * longest) == longest  # there is time for more, but not for views
    assert most(meter.seconds, 8 * longest) == pytest.approx(2 * longest, rel=0.02)


def at(trainer: Trainer) -> Progress:
    return Progress(trainer.epoch, trainer.cfg.epochs, step=trainer.step, steps=trainer.cfg.steps)


WIDER = {"name": "compact-8", "wider": ["compact-12", "compact-16"], "wider_epochs": 10}


@pytest.mark.parametrize(
    ("epochs", "name"), [(9, "compact-8"), (20, "compact-8"), (29, "compact-12"), (60, "compact-16")]
)
def test_a_wider_network_is_taken_where_there_is_time_to_train_it(epochs: float, name: str) -> None:
    config = quick("ce", net=WIDER)
    prepared = prepare(config, load_dataset(config, None))
    assert widest(prepared, shared(prepared, epochs), 100) == name
    as_it_is = quick("ce", net={**WIDER, "wider": []})
    few = replace(prepared, train_rows=prepared.train_rows[:100])  # of compact-8's 18,674 parameters
    assert widest(few, shared(prepared, epochs), 100) == "compact-8"
    assert widest(replace(prepared, config=as_it_is), shared(prepared, epochs), 100) == "compact-8"


def shared(prepared: Prepared, epochs: float) -> Callable[[str], float]:
    """Epochs that each network would have in the time in which compact-8 has so many, by its multiply-adds."""
    task = prepared.spec

    def work(name: str) -> int:
        net = nets.build(name, channels=task.channels, classes=len(task.classes), size=task.size, dropout=0.0)
        return nets.multiply_adds(net, task.size, task.channels)

    return lambda name: epochs * work("compact-8") / work(name)


def test_networks_are_timed_up_to_the_first_for_which_there_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PER_IMAGE", 10_000)
    config = quick("ce", net=WIDER)
    prepared = prepare(config, load_dataset(config, None))
    epochs = Mock(return_value=9)
    assert suitable(prepared, epochs) == "compact-8"
    epochs.assert_called_once_with("compact-12")


def test_noisy_labels_get_a_narrower_network(monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce", net=WIDER)
    prepared = prepare(config, load_dataset(config, None))
    task = prepared.spec
    large = nets.build("compact-16", channels=task.channels, classes=len(task.classes), size=task.size, dropout=0.0)
    monkeypatch.setattr(budget, "PER_IMAGE", 1.01 * nets.parameters(large) / len(prepared.train_rows))
    for share, name in ((0.0, "compact-16"), (0.4, "compact-12"), (0.9, "compact-8")):
        monkeypatch.setattr(budget, "piloted", Mock(return_value=share))
        assert suitable(prepared, shared(prepared, 100)) == name
    never = Mock(side_effect=AssertionError("with time for one network only, the noise makes no difference"))
    monkeypatch.setattr(budget, "piloted", never)
    assert suitable(prepared, shared(prepared, 9)) == "compact-8"


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8])
def test_a_run_on_trial_finds_the_noise(share: float) -> None:
    noise = {"name": "symmetric", "ratio": share}
    config = quick("ce", noise=noise, train={"batch": 32}, net={"name": "compact-8"})
    assert piloted(prepare(config, load_dataset(config, None))) == pytest.approx(share, abs=0.08)


def test_a_run_on_trial_is_the_same_for_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PILOT", 7)  # more than the five steps of an epoch
    found = set()
    for method, train in (("ce", {}), ("gce", {"optimizer": "sgd", "lr": 0.3}), ("rte", {"momentum": 0.5})):
        config = quick(method, noise={"name": "symmetric", "ratio": 0.4}, train=train)
        found.add(piloted(prepare(config, load_dataset(config, None))))
    assert len(found) == 1
    assert 0 < found.pop() < 1


def test_the_length_is_that_of_the_network_which_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick("ce", net=WIDER, train={"evaluate_every": 1_000_000})
    prepared = prepare(config, load_dataset(config, None))
    seconds = {"compact-8": 0.01, "compact-16": 0.04}

    def timed(made: Trainer) -> tuple[float, float]:
        channels = made.method.state_dict()["net.stem.0.weight"].shape[0]
        return 0.0, seconds["compact-8" if channels == 8 else "compact-16"]

    monkeypatch.setattr(budget, "_timed", timed)
    monkeypatch.setattr(budget, "PER_IMAGE", 100)
    fitted = fit_budget(prepared, 1000.0)
    assert fitted.net.name == "compact-16"
    assert fitted.train.steps == pytest.approx(1000 / 0.04, rel=0.1)
    assert fit_budget(replace(prepared, config=config.with_net("compact-16")), 1000.0).net.name == "compact-16"


@pytest.mark.parametrize(("budget_", "second"), [("1m", "compact-16"), (None, "compact-8")])
def test_methods_are_compared_on_the_network_that_the_first_one_got(
    budget_: str | None, second: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []

    def start(config: RunConfig, folder: Path, **kwargs: Any) -> dict[str, Any]:
        seen.append((config.net.name, config.net.wider))
        return {"net": "compact-16"}

    monkeypatch.setattr("rte.run.start", start)
    monkeypatch.setattr("rte.report.tables.comparison", lambda results: "")
    settings = ["net.name=compact-8", "net.wider=['compact-16']"]
    compare("digits", methods="ce,gce", budget=budget_, settings=settings, out=tmp_path)
    assert [name for name, _ in seen] == ["compact-8", second]
    assert seen[0][1] == ("compact-16",)


def test_a_budget_becomes_a_number_of_steps() -> None:
    config = quick("ce")
    fitted = fit_budget(prepare(config, load_dataset(config, None)), 3600.0)
    assert fitted.train.steps is not None
    per_epoch = 1297 // config.train.batch
    assert fitted.train.epochs == math.ceil(fitted.train.steps / per_epoch)
    assert fitted.with_train(steps=None, epochs=config.train.epochs) == config  # nothing else has changed


def test_too_little_time_is_refused() -> None:
    config = quick("ce")
    with pytest.raises(ConfigError, match=r"a budget of 0 s is enough for 0 steps .* give more time"):
        fit_budget(prepare(config, load_dataset(config, None)), 0.01)


# ---- runs that end after so many steps


def test_schedules_reach_their_end_at_the_last_step() -> None:
    ends = [Progress(1, 2, j=1, J=5, step=6, steps=7).fraction, Progress(0, 2, j=6, J=5, step=7, steps=7).fraction]
    assert ends == [6 / 7, 1.0]


@pytest.mark.parametrize(("method", "stop"), [("ce", 7), ("ce", 8), ("rte", 7), ("dividemix", 7)])
def test_a_run_of_some_steps_resumes_exactly(method: str, stop: int) -> None:
    config = quick(method, train={"steps": 8, "epochs": 3})  # five steps an epoch
    straight = trainer(config)
    straight.fit()
    assert straight.step >= 8
    if method != "dividemix":  # whose epochs have as many steps as it finds examples for
        assert (straight.step, straight.epoch, len(straight.history)) == (8, 2, 2)
    saved: dict[str, Any] = {}
    stopped = trainer(config, saved, observer=StopAfter(stop))
    with pytest.raises(Interrupted):
        stopped.fit()
    resumed = trainer(config)
    resumed.restore(saved["checkpoint"])
    resumed.fit()
    assert (resumed.step, len(resumed.history)) == (straight.step, len(straight.history))
    assert same(straight.method, resumed.method)


@pytest.mark.parametrize("stop", [6, 8, 10])
def test_steps_may_count_for_more_than_one_and_the_run_ends_sooner(stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CrossEntropy, "price", lambda self, t: 1.5 if t.fraction >= 0.5 else 1.0)
    config = quick("ce", train={"steps": 13, "epochs": 3, "lr": Linear(start=0.1, end=0.0).model_dump()})
    straight, seen = trainer(config), Seen()
    straight.observer = seen
    straight.fit()
    # seven steps, then four that count as six, as far as 13: in epochs of five, the last of the third one
    assert [round(13 * fraction, 6) for fraction, _ in seen.steps] == [0, 1, 2, 3, 4, 5, 6, 7, 8.5, 10, 11.5]
    np.testing.assert_allclose([lr for _, lr in seen.steps], [0.1 * (1 - f) for f, _ in seen.steps])
    assert (straight.step, straight.epoch, len(straight.history), straight.finished) == (11, 3, 3, True)

    saved: dict[str, Any] = {}
    with pytest.raises(Interrupted):
        trainer(config, saved, observer=StopAfter(stop)).fit()
    resumed, rest = trainer(config), Seen()
    resumed.observer = rest
    resumed.restore(saved["checkpoint"])
    resumed.fit()
    assert rest.steps == seen.steps[stop:]
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


class Seen:
    """An observer that keeps where each step was, and its learning rate."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float]] = []

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.steps.append((t.fraction, terms["lr"]))

    def epoch(self, epoch: int, scores: Any) -> None: ...


def test_from_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "rte", "fit", "digits", "-m", "ce", "--budget", "20s", "--out", str(out)]
    command += ["--net", "compact-8"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    assert read_json(out / "result.json")["steps"] == read_json(out / "config.json")["train"]["steps"]
    both = subprocess.run([*command, "--epochs", "3"], capture_output=True, text=True, check=False)
    assert both.returncode == 2
    assert "--budget and --epochs each set the length" in both.stderr
