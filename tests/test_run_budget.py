"""Runs of a given time: reading it, foreseeing what follows the last step, and that a run can be repeated exactly."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import quick
from test_train_trainer import StopAfter, same

from rte import nets
from rte.compare.plan import plan
from rte.compare.runner import train
from rte.config import RunConfig, resolve
from rte.errors import ConfigError
from rte.evaluate.examiner import Examiner
from rte.files import read_json
from rte.parts.schedules import Linear
from rte.recipes.policy import ASSUMED, signal
from rte.run import budget
from rte.run.budget import (
    FILE,
    FIXED,
    NEAR,
    PAGE,
    PER_IMAGE,
    ROOM,
    WRITING,
    Closing,
    by_clock,
    copy_path,
    fit_network,
    parse_budget,
    refuse_short,
    relative_cost,
    with_budget,
)
from rte.run.build import Prepared, load_dataset, make_trainer, prepare
from rte.train.distributed import World
from rte.train.pace import ByClock
from rte.train.trainer import Interrupted, Trainer


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("1h30", 5400),
        ("2m30", 150),
        ("1h30m15s", 5415),
        (" 2H ", 7200),
    ],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "3 d", "-5m", "m", "1h-", "1e3s", "30m1h", "5 m 3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--budget .* is no time"):
        parse_budget(text)


@pytest.mark.parametrize("text", ["0s", "0", "0h0m"])
def test_no_time_at_all_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--budget .* leaves no time"):
        parse_budget(text)


# ---- what follows the last step


class Looks:
    """An examiner of so many images, on a machine whose predictions take so long."""

    def __init__(self, every: int, final: int, seconds: float) -> None:
        self.every, self.final, self.seconds, self.glances = every, final, seconds, 0

    def looks(self, networks: int, *, final: bool, audited: bool = False) -> int:
        return (1 + networks) * (self.final if final else self.every) + (self.final if final and audited else 0)

    def glance(self, method: Any) -> float:
        self.glances += 1
        return self.seconds


class Two:
    def networks(self) -> dict[str, None]:
        return {"student": None}


def test_the_end_is_foreseen_from_a_glance_and_looked_at_again_when_it_comes_near() -> None:
    examiner = Looks(every=50, final=100, seconds=0.01)
    closing = Closing(Two(), examiner)  # type: ignore[arg-type]
    usual = WRITING + ROOM * 2 * 100 * 0.01
    for left in (1000.0, 500.0, NEAR[0] * 2.0 + 0.01):
        assert closing(left, 0.1) == pytest.approx(usual)
    assert examiner.glances == 1
    examiner.seconds = 0.02  # the machine has become slower
    assert closing(NEAR[0] * 2.0 - 0.01, 0.1) == pytest.approx(WRITING + ROOM * 2 * 100 * 0.02)
    assert closing(NEAR[1] * 4.0 + 0.01, 0.1) == pytest.approx(WRITING + ROOM * 2 * 100 * 0.02)
    assert examiner.glances == 2
    for left in (NEAR[1] * 4.0 - 0.01, 1.0, 0.1):
        closing(left, 0.1)
    assert examiner.glances == 3, "twice again at most"


def test_the_end_is_foreseen_anew_when_steps_take_longer_or_less() -> None:
    now = 0.0
    examiner = Looks(every=50, final=100, seconds=0.01)
    closing = Closing(Two(), examiner, clock=lambda: now)  # type: ignore[arg-type]
    usual = WRITING + ROOM * 2 * 100 * 0.01
    closing(1000.0, 0.0)  # before the first step nothing is known of it
    for step in (0.1, 0.12, 0.085):
        assert closing(1000.0, step) == pytest.approx(usual)
    assert examiner.glances == 1
    examiner.seconds = 0.02
    assert closing(1000.0, 0.2) == pytest.approx(WRITING + ROOM * 2 * 100 * 0.02), "the machine has become slower"
    examiner.seconds = 0.005
    assert closing(1000.0, 0.05) == pytest.approx(WRITING + ROOM * 2 * 100 * 0.005), "and faster than at first"
    assert closing(1000.0, 0.05) == closing(1000.0, 0.055)
    assert examiner.glances == 3


def test_an_audit_that_takes_too_much_of_the_time_is_left_out_and_stays_so() -> None:
    examiner = Looks(every=50, final=100, seconds=0.01)  # an audit looks at a hundred more
    plain = WRITING + ROOM * 2 * 100 * 0.01
    short, long = (Closing(Two(), examiner, audited=True, most=PAGE + most, clock=lambda: 0.0) for most in (1.0, 1.1))  # type: ignore[arg-type]
    assert long(1000.0, 0.1) == pytest.approx(plain + PAGE + ROOM * 100 * 0.01)
    assert long.audited
    assert short(1000.0, 0.1) == pytest.approx(plain)
    examiner.seconds = 0.001
    assert short(1000.0, 0.01) < plain
    assert not short.audited, "late in a run there is no time left for it"


def test_the_end_is_foreseen_from_the_last_evaluation() -> None:
    examiner = Looks(every=50, final=100, seconds=0.01)
    closing = Closing(Two(), examiner)  # type: ignore[arg-type]
    closing.evaluated(3.0)
    assert closing(1000.0, 0.1) == pytest.approx(WRITING + ROOM * 2 * 3.0)
    assert examiner.glances == 0
    closing.evaluated(0.0)
    assert closing(1000.0, 0.1) == pytest.approx(WRITING + ROOM * 2 * 3.0), "what took no time tells nothing"
    audited = Closing(Two(), examiner, audited=True)  # type: ignore[arg-type]
    assert audited(1000.0, 0.1) == pytest.approx(WRITING + PAGE + ROOM * 3 * 100 * 0.01), "an audit looks at all again"


@pytest.mark.parametrize("share", [1.0, 0.625, 0.5])
def test_a_step_costs_less_at_a_lower_resolution(share: float) -> None:
    rising = {"kind": "steps", "values": [share, 1.0], "fractions": [0, 0.4]}
    cfg = quick("ce", train={"resolution": rising}).train
    assert relative_cost(cfg, 0.3) == pytest.approx(FIXED + (1 - FIXED) * share**2)
    assert relative_cost(cfg, 0.4) == relative_cost(cfg, 1.0) == 1.0


def test_a_time_that_is_over_before_the_first_step_is_refused() -> None:
    refuse_short(60.0, time.monotonic() - 50.0, World())
    with pytest.raises(ConfigError, match=r"a budget of 60 s leaves no time to train: .* took 55 s; give more time"):
        refuse_short(60.0, time.monotonic() - 55.0, World())


# ---- the network for the time

WIDER = {"name": "compact-8", "wider": ["compact-12", "compact-16"], "wider_epochs": 10}


def digits(**settings: Any) -> Prepared:
    config = quick("ce", **{"net": WIDER, **settings})
    return prepare(config, load_dataset(config, None))


def flops(prepared: Prepared, name: str) -> float:
    """Of an epoch, there and back."""
    spec = prepared.spec
    made = nets.build(name, channels=spec.channels, classes=len(spec.classes), size=spec.size)
    return 6.0 * nets.multiply_adds(made, spec.size, spec.channels) * len(prepared.train_rows)


def most(prepared: Prepared) -> float:
    """Parameters that a wider network may have."""
    return PER_IMAGE * math.sqrt(signal(ASSUMED, len(prepared.spec.classes))) * len(prepared.train_rows)


@pytest.mark.parametrize(
    ("epochs", "name"), [(9, "compact-8"), (20, "compact-8"), (29, "compact-12"), (60, "compact-16")]
)
def test_a_wider_network_is_taken_where_there_is_time_to_train_it(
    epochs: float, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "PER_IMAGE", 10_000)
    prepared = digits()
    speed = flops(prepared, "compact-8") * epochs / (100.0 * budget.EFFICIENCY)  # so many epochs in 100 seconds
    fitted = fit_network(prepared, 100.0, World(), speed=speed)
    assert (fitted.net.name, fitted.net.wider) == (name, ())
    assert fitted == prepared.config.with_net(name), "nothing else has changed"


def test_steps_at_a_lower_resolution_leave_time_for_a_wider_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PER_IMAGE", 10_000)
    whole, half = digits(), digits(train={"resolution": 0.5})
    speed = flops(whole, "compact-12") * 9.0 / (100.0 * budget.EFFICIENCY)  # of the ten epochs that it takes
    assert fit_network(whole, 100.0, World(), speed=speed).net.name == "compact-8"
    assert fit_network(half, 100.0, World(), speed=speed).net.name != "compact-8"


def test_few_images_get_no_wider_network(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = digits()
    spec = prepared.spec
    twelve = nets.parameters(nets.build("compact-12", channels=spec.channels, classes=10, size=spec.size))
    for share, name in ((0.99, "compact-8"), (1.01, "compact-12")):
        monkeypatch.setattr(budget, "PER_IMAGE", budget.PER_IMAGE * share * twelve / most(prepared))
        assert fit_network(prepared, 1e9, World(), speed=1e12).net.name == name
        monkeypatch.undo()


def test_the_speed_is_asked_for_only_where_there_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(budget, "convolution_speed", lambda precision: asked.append(precision) or 1e9)
    one = digits(net={"name": "compact-8"})
    assert fit_network(one, 60.0, World()) is one.config
    assert asked == []
    fit_network(digits(), 60.0, World())
    assert asked == ["fp32"]


@pytest.mark.parametrize(("given", "second"), [(60.0, "compact-16"), (None, "compact-8")])
def test_methods_are_compared_on_the_network_that_the_first_one_got_each_in_the_same_time(
    given: float | None, second: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []
    times: list[tuple[float | None, float | None]] = []

    def begin(config: RunConfig, folder: Path, **kwargs: Any) -> dict[str, Any]:
        seen.append((config.net.name, config.net.wider))
        times.append((kwargs["budget"], kwargs["started"]))
        return {"net": "compact-16", "epochs": 1, "train_seconds": 1.0, "test": {"last": 0.5}}

    monkeypatch.setattr("rte.compare.runner.start_or_resume", begin)
    net = {"name": "compact-8", "wider": ["compact-16"]}
    comparison, _ = plan(
        ["ce", "gce"], lambda name: resolve("digits", {"net": net, "method": {"name": name}}), budget=given
    )
    train(comparison, tmp_path, data_dir=None, watch=lambda title: None, started=5.0)
    assert [name for name, _ in seen] == ["compact-8", second]
    assert seen[0][1] == ("compact-16",)
    assert times == [(given, 5.0), (given, None)], "the second one's time begins when it does"


# ---- the path

RISING = {"kind": "steps", "values": [0.5, 1.0], "fractions": [0, 0.4]}
CLOCKED = {"lr": Linear(start=0.1, end=0.0).model_dump(), "resolution": RISING, "batch": 64}


def clocked(method: str, file: Path, seconds: float, **how: Any) -> Trainer:
    """A run that ends so many seconds from now."""
    own = {"views": 2} if method == "rte" else {}
    config = with_budget(quick(method, method=own, train=CLOCKED), seconds)
    prepared = prepare(config, load_dataset(config, None))
    saved = how.pop("saved", {})
    trainer, examiner = make_trainer(prepared, save=saved.__setitem__, **how)
    trainer.timeline = by_clock(trainer, examiner, seconds, time.monotonic(), file)
    return trainer


def on_a_busy_machine(made: Trainer) -> Trainer:
    """The same run, whose time is that which the process has computed for, however much else the machine does."""
    assert isinstance(made.timeline, ByClock)
    made.timeline.clock = time.process_time
    made.timeline.started = time.process_time()
    return made


@pytest.mark.parametrize("method", ["rte", "auto"])
def test_a_run_by_the_clock_resumes_and_repeats_bit_for_bit(method: str, tmp_path: Path) -> None:
    path, saved = tmp_path / FILE, dict[str, Any]()
    stopped = on_a_busy_machine(clocked(method, path, 5.0, saved=saved, observer=StopAfter(9)))
    with pytest.raises(Interrupted):
        stopped.fit()
    resumed = on_a_busy_machine(clocked(method, path, 5.0))
    resumed.restore(saved["checkpoint"])
    resumed.fit()
    assert resumed.step > 9
    repeated = clocked(method, path, 0.001)  # whose time would be over at once, if it went by it
    repeated.fit()
    assert (repeated.step, repeated.epoch) == (resumed.step, resumed.epoch)
    assert same(repeated.method, resumed.method)
    assert repeated.history == resumed.history


def test_the_whole_time_is_used_from_the_first_step_to_the_last_evaluation(tmp_path: Path) -> None:
    made = clocked("ce", tmp_path / FILE, 4.0)
    began = time.monotonic()
    made.fit()
    assert made.finished
    used = time.monotonic() - began
    assert used < 4.0 + 5.0
    assert made.step > 20
    assert made.optimizer.lr < 0.03, "the schedule has come to its end"


def test_the_path_of_another_run_is_followed_only_if_it_has_come_to_its_end(tmp_path: Path) -> None:
    made = clocked("ce", tmp_path / FILE, 1.0)
    made.fit()
    for name in ("new", "other"):
        (tmp_path / name).mkdir()
    copy_path(tmp_path, tmp_path / "new")
    copy_path(tmp_path / FILE, tmp_path / "other")
    expected = (tmp_path / FILE).read_bytes()
    assert (tmp_path / "new" / FILE).read_bytes() == (tmp_path / "other" / FILE).read_bytes() == expected
    shutil.copy(tmp_path / FILE, tmp_path / "new" / FILE)
    unfinished = b"\n".join(expected.splitlines()[:1]) + b"\n"
    (tmp_path / "new" / FILE).write_bytes(unfinished)
    for nothing in (tmp_path / "new", tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match=r"is no path of a finished run with --budget"):
            copy_path(nothing, tmp_path / "other")


def test_a_budget_takes_the_place_of_steps_in_what_the_folder_records() -> None:
    config = quick("ce", train={"steps": 7})
    found = with_budget(config, 60.0)
    assert (found.train.budget, found.train.steps) == (60.0, None)
    assert with_budget(found, 60.0) == found


def test_examiners_of_a_timed_run_look_at_some_training_examples_only() -> None:
    made = []
    for seconds in (None, 60.0):
        config = quick("ce")
        config = config if seconds is None else with_budget(config, seconds)
        _, examiner = make_trainer(prepare(config, load_dataset(config, None)), save=lambda name, state: None)
        assert isinstance(examiner, Examiner)
        made.append(examiner.most)
    assert made == [None, 10_000]


@pytest.mark.slow
def test_from_the_command_line_the_end_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "rte", "fit", "digits", "-m", "ce", "--budget", "20s", "--out", str(out)]
    command += ["--net", "compact-8"]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, text=True)
    assert time.monotonic() - began < 20.0 + 10.0, "with the start of Python, on a machine that other tests use"
    result, config = (read_json(out / name) for name in ("result.json", "config.json"))
    assert config["train"]["budget"] == 20.0
    assert result["steps"] > 20
    both = subprocess.run([*command, "--epochs", "3"], capture_output=True, text=True, check=False)
    assert both.returncode == 2
    assert "--budget and --epochs each set the length" in both.stderr
