"""Means, spreads and ties of a comparison, by hand."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from rte.compare.plan import plan
from rte.compare.summary import Row, summarise
from rte.config import RunConfig, resolve


def configure(name: str) -> RunConfig:
    return resolve("digits", {"method": {"name": name}})


def result(last: float, *, test: bool = True) -> dict[str, Any]:
    out: dict[str, Any] = {
        "val": {"last": last / 2},
        "memorisation": {"memorised": 0.1},
        "epochs": 4,
        "train_seconds": 8.0,
        "memory": 1000,
        "selected": {"epoch": 2, "val": 0.5, **({"test": last + 0.01} if test else {})},
    }
    return {**out, "test": {"last": last}} if test else out


def rows(*, test: bool = True, **lasts: list[float | str]) -> dict[str, Row]:
    seeds = max(len(values) for values in lasts.values())
    comparison, _ = plan(list(lasts), configure, seeds=seeds)
    results = {
        f"{name}-s{seed}": {"failed": value} if isinstance(value, str) else result(value, test=test)
        for name, values in lasts.items()
        for seed, value in enumerate(values)
    }
    return {row.method: row for row in summarise(comparison, dict.fromkeys(lasts, 1.0), results)}


def test_mean_and_spread_are_those_over_seeds() -> None:
    last = rows(ce=[0.5, 0.6, 0.9])["ce"].figures["last"]
    assert last.mean == pytest.approx((0.5 + 0.6 + 0.9) / 3)
    assert last.spread == pytest.approx(statistics.stdev([0.5, 0.6, 0.9]))
    assert rows(ce=[0.5, 0.6])["ce"].figures["selected"].mean == pytest.approx(0.56)


def test_a_method_ties_where_it_is_behind_by_less_than_the_spread_of_the_difference() -> None:
    found = rows(ce=[0.60, 0.64], gce=[0.63, 0.69], rte=[0.30, 0.34])
    assert found["gce"].behind == 0
    assert not found["gce"].tie
    # spreads 0.0283 and 0.0424: their root of squares is 0.051, and ce is 0.04 behind
    assert found["ce"].behind == pytest.approx(0.04)
    assert found["ce"].tie
    assert found["rte"].behind == pytest.approx(0.34)
    assert not found["rte"].tie


def test_one_seed_has_no_spread_and_no_tie() -> None:
    found = rows(ce=[0.6], gce=[0.61])
    assert found["ce"].figures["last"].spread is None
    assert not found["ce"].tie


def test_a_failed_run_makes_its_method_fail_and_no_other() -> None:
    found = rows(ce=[0.6, "the loss is nan"], gce=[0.5, 0.5])
    assert found["ce"].failed == "the loss is nan"
    assert found["ce"].behind is None
    assert found["gce"].behind == 0


def test_without_a_test_set_methods_are_ranked_by_held_out_labels() -> None:
    found = rows(test=False, ce=[0.6], gce=[0.8])
    assert "last" not in found["ce"].figures
    assert found["ce"].behind == pytest.approx(0.1)


def test_rows_are_plain_values_too() -> None:
    tree = rows(ce=[0.5, 0.7])["ce"].tree()
    assert tree["figures"]["last"]["values"] == [0.5, 0.7]
    assert tree["folders"] == ("ce-s0", "ce-s1")
