"""Which runs a comparison has, and by what a learning rate is chosen."""

from __future__ import annotations

import pytest

from rte.compare.plan import Comparison, best, parse_rates, plan
from rte.config import RunConfig, resolve
from rte.errors import ConfigError


def configure(name: str) -> RunConfig:
    return resolve("digits", {"method": {"name": name}, "seed": 5})


def folders(comparison: Comparison, name: str) -> list[str]:
    config = next(config for config in comparison.configs if config.method_name == name)
    return [run.folder for run in (*comparison.trials(config), *comparison.rest(config, 1.0))]


def test_every_method_has_a_run_for_each_seed() -> None:
    comparison, notes = plan(["ce", "gce"], configure, seeds=3)
    assert folders(comparison, "gce") == ["gce-s5", "gce-s6", "gce-s7"]
    assert not notes


def test_runs_of_a_seed_differ_in_the_method_alone() -> None:
    comparison, _ = plan(["ce", "gce"], configure, seeds=2)
    one, two = (comparison.run(config, 1.0, 1).config.tree() for config in comparison.configs)
    assert one.pop("method") != two.pop("method")
    assert one == two
    assert one["seed"] == 6


def test_rates_are_tried_with_the_first_seed_and_need_held_out_labels() -> None:
    comparison, _ = plan(["ce"], configure, seeds=2, rates="0.5,1")
    assert folders(comparison, "ce") == ["ce-rate0.5-s5", "ce-rate1-s5", "ce-rate1-s6"]
    assert all(config.train.holdout == 0.1 for config in comparison.configs)
    half, whole = comparison.trials(comparison.configs[0])
    t = type("Moment", (), {"epoch": 3, "epochs": 10, "fraction": 0.3})()
    assert half.config.train.lr.at(t) == pytest.approx(whole.config.train.lr.at(t) / 2)


def test_held_out_labels_that_are_asked_for_stay_as_they_are() -> None:
    comparison, _ = plan(["ce"], lambda name: configure(name).with_train(holdout=0.2), rates="0.5,1")
    assert comparison.configs[0].train.holdout == 0.2


def test_a_comparison_is_read_again_as_it_was_written() -> None:
    comparison, _ = plan(["ce", "rte"], configure, seeds=2, rates="0.5,1", budget=60.0)
    assert Comparison.from_tree(comparison.tree()) == comparison


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([(0.3, 0.5), (1.0, 0.6), (3.0, 0.4)], 1.0),
        ([(0.3, 0.6), (1.0, 0.6), (3.0, 0.6)], 1.0),  # of equals the one nearest to 1
        ([(0.3, 0.5), (1.0, None), (3.0, None)], 0.3),
        ([(1.0, None)], None),
    ],
)
def test_the_best_rate_is_that_of_the_highest_accuracy_on_held_out_labels(
    values: list[tuple[float, float | None]], expected: float | None
) -> None:
    assert best(values) == expected


@pytest.mark.parametrize("text", ["", "0", "-1,1", "1,1", "a", "1,inf", "nan"])
def test_factors_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--rates .*: write different factors of the learning rate, such as 0.3,1,3"):
        parse_rates(text)


def test_a_method_is_named_once() -> None:
    with pytest.raises(ConfigError, match="--methods names co_teaching twice"):
        plan(["co_teaching", "co-teaching"], configure)


def test_methods_of_a_group_that_need_trusted_examples_are_left_out_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rte import registry

    monkeypatch.setattr(registry.method("gce"), "needs", ("trusted examples",))
    comparison, notes = plan(["ce", "gce"], configure, group=True)
    assert [config.method_name for config in comparison.configs] == ["ce"]
    assert notes == ["left out: gce; they need trusted examples, such as --set train.trusted=100"]
    named_one, _ = plan(["ce", "gce"], configure)  # by name: the run itself says what is missing
    assert len(named_one.configs) == 2
