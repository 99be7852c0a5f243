"""Estimates of cost against counts by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from rte import nets, registry
from rte.config import resolve
from rte.files import write_json
from rte.reproduce.cost import V100, estimate, measuring, rate_here, training
from rte.reproduce.define import find
from rte.reproduce.plan import Options, jobs

FORWARD = 2.0 * nets.multiply_adds(nets.build("compact-32", channels=3, classes=10, size=(32, 32)), (32, 32), 3)
LAPTOP = {"data": {"name": "cifar10"}, "net": {"name": "compact-32"}, "train": {"epochs": 4}}


def test_a_run_of_cross_entropy() -> None:
    """One view, forward and backward; the test set once an epoch."""
    config = resolve("default", {**LAPTOP, "method": {"name": "ce"}})
    assert training(config) == pytest.approx(4 * FORWARD * (3 * 50_000 + 10_000))


def test_a_run_of_rte() -> None:
    """One weak and two strong views, the teacher's look at the weak one; teacher and student are tested."""
    config = resolve("default", {**LAPTOP, "method": {"name": "rte", "views": 2}})
    assert training(config) == pytest.approx(4 * FORWARD * ((3 * 3 + 1) * 50_000 + 2 * 10_000))


def test_methods_say_themselves_what_an_example_costs() -> None:
    """Two networks forward and backward; after the warm-up DivideMix's two passes, each with as many unlabelled."""
    config = resolve("default", {**LAPTOP, "method": {"name": "co_teaching", "noise_rate": 0.4}})
    assert training(config) == pytest.approx(4 * FORWARD * (6 * 50_000 + 3 * 10_000))
    config = resolve("default", {**LAPTOP, "method": {"name": "dividemix", "warmup": 0.25}})
    at_least, at_most = (FORWARD * ((6 + 3 * 2 * k * 8) * 50_000 + 4 * 3 * 10_000) for k in (1, 2))
    assert at_least <= training(config) <= 1.001 * at_most  # by how many labels its split keeps


def test_a_schedule_of_views() -> None:
    steps = {"kind": "steps", "values": [2, 6], "epochs": [0, 2]}
    config = resolve("default", {**LAPTOP, "method": {"name": "rte", "views": steps}})
    assert training(config) == pytest.approx(4 * FORWARD * ((3 * 5 + 1) * 50_000 + 2 * 10_000))


@pytest.mark.parametrize("method", sorted(registry.methods()))
def test_every_method_tells_what_it_costs_with_the_preset_for_minutes(method: str) -> None:
    """Whose parts count labels, and look at their own state to say who is seen."""
    assert training(resolve("laptop", {"data": {"name": "cifar10"}, "method": {"name": method}})) > 1e12


def test_measures() -> None:
    config = resolve("default", LAPTOP)
    assert measuring(config, "mce") == pytest.approx(75 * 10_000 * FORWARD)
    assert measuring(config, "losses") == pytest.approx(50_000 * FORWARD)


def test_imagenet_is_as_the_preset_says(tmp_path: Path) -> None:
    found = estimate(jobs([find("imagenet")], Options(size="paper", only=("RTE",))), tmp_path)
    assert (found.runs, found.todo) == (1, 1)
    assert found.hours(V100) == pytest.approx(1200, rel=0.1)


def test_what_is_done_costs_nothing_and_tells_the_rate(tmp_path: Path) -> None:
    every = jobs([find("patrini")], Options())
    before = estimate(every, tmp_path)
    folder = tmp_path / every[0].folder
    folder.mkdir()
    write_json(folder / "config.json", every[0].config.tree())
    write_json(folder / "result.json", {"train_seconds": 10.0})
    after = estimate(every, tmp_path)
    assert (before.todo, after.todo, after.runs) == (len(every), len(every) - 1, len(every))
    assert before.flops - after.flops == pytest.approx(training(every[0].config))
    rate, source = rate_here(every, tmp_path)
    assert rate == pytest.approx(training(every[0].config) / 10)
    assert source == "the runs that are done"


def test_searches_count_by_their_population(tmp_path: Path) -> None:
    paper = Options(size="paper", only=("CIFAR-10 80 %",))
    by_kind = {job.kind: job for job in jobs([find("main")], paper) if job.title.startswith(("RTE (PBT)", "RTE CIFAR"))}
    search, manual = (estimate([by_kind[kind]], tmp_path).flops for kind in ("pbt", "run"))
    assert search == pytest.approx(35 * manual)
