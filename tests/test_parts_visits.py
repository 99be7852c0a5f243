"""Who is seen more often: chances by the pull, draws that keep to them, and runs that go on with who was drawn."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick
from hypothesis import given
from hypothesis import strategies as st
from test_train_trainer import same, stopped_and_resumed, trainer

from rte.config import RunConfig
from rte.errors import ConfigError
from rte.methods.base import Progress
from rte.parts import selftune
from rte.parts.selftune import GENTLE, SHORT, matching_q
from rte.parts.visits import BEGIN, FLOOR, Visits, chances, systematic
from rte.train.trainer import Trainer


@pytest.fixture(autouse=True)
def _as_if_images_were_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lest so few as tests have keep examples from being chosen by their pull."""
    monkeypatch.setattr(selftune, "MANY", 1)


@given(
    pull=st.lists(st.floats(0, 1), min_size=2, max_size=60),
    share=st.sampled_from([0.5, 1 / 3, 0.25, 0.8]),
)
def test_chances_rise_with_the_pull_and_have_the_share_for_a_mean(pull: list[float], share: float) -> None:
    found = chances(torch.tensor(pull), share).numpy()
    assert found.mean() == pytest.approx(share, rel=1e-6)
    assert found.min() >= FLOOR * share
    assert found.max() <= 1.0
    order = np.argsort(pull, kind="stable")
    assert (np.diff(found[order]) >= -1e-12).all()
    free = (found < 1.0) & (np.array(pull) > 1e-3)
    slopes = (found[free] - FLOOR * share) / np.array(pull)[free]
    assert slopes.size == 0 or slopes.max() == pytest.approx(slopes.min(), rel=1e-3), "a + b pull, one b for all"


def test_learnt_labels_still_have_chances() -> None:
    assert chances(torch.zeros(10), 0.5).numpy() == pytest.approx(np.full(10, 0.5))


def test_draws_keep_to_the_chances_and_take_nobody_twice() -> None:
    wanted = chances(torch.linspace(0, 1, 40) ** 3, 0.5)
    torch.manual_seed(0)
    draws = [systematic(wanted).tolist() for _ in range(4000)]
    assert {len(draw) for draw in draws} == {20}
    assert all(len(set(draw)) == 20 for draw in draws)
    seen = Counter(i for draw in draws for i in draw)
    np.testing.assert_allclose([seen[i] / 4000 for i in range(40)], wanted.numpy(), atol=0.03)  # 4 standard errors


@pytest.mark.parametrize("each", [0.5, 0.5 - 1e-9, 0.5 + 1e-9])
def test_the_last_draw_finds_somebody_wherever_it_falls(each: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chances add up to an integer but for rounding, so that the last mark may lie beyond their sum."""
    monkeypatch.setattr(torch, "rand", lambda *size, **kind: torch.ones(*size, **kind) - 1e-12)
    found = systematic(torch.full((50_000,), each, dtype=torch.float64))
    assert len(found.unique()) == len(found) == 25_000
    assert (found.min() >= 0) & (found.max() < 50_000)


def test_before_its_time_or_unwanted_everybody_is_seen_once() -> None:
    visits = Visits(8, 0.5)
    for fraction, wanted in ((BEGIN - 0.01, True), (0.9, False)):
        visits.open(Progress(1, 100, step=round(1000 * fraction), steps=1000), wanted=wanted)
        assert not visits.begun
        assert visits.passes() == [None]


def test_an_epoch_is_divided_into_passes_with_draws_of_their_own() -> None:
    visits, late = Visits(1000, 0.25), Progress(5, 10)
    visits.remember(torch.arange(500), torch.zeros(500))
    torch.manual_seed(0)
    visits.open(late, wanted=True)
    parts = [part for part in visits.passes() if part is not None]
    assert [len(part) for part in parts] == [250] * 4
    assert len({tuple(part.tolist()) for part in parts}) == 4
    assert np.mean([float((part < 500).float().mean()) for part in parts]) == pytest.approx(FLOOR / 2, abs=0.04)
    visits.open(late, wanted=False)
    assert visits.passes() == [None], "the end of it, once it is unwanted"


# ---- in a run


CHOSEN = {"auto": True, "q": 0.7, "jsd_weight": 0.0, "ecr_weight": 0.0, "task_loss": "forward", "visits": 0.5}


def chosen(**train: Any) -> RunConfig:
    return quick("rte", method=CHOSEN, noise={"name": "symmetric", "ratio": 0.2}, train={"epochs": 10, **train})


class Seen:
    """How many steps each epoch has, and which terms they tell of."""

    def __init__(self) -> None:
        self.steps: Counter[int] = Counter()
        self.terms: list[dict[str, float]] = []

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.steps[t.epoch] += 1
        self.terms.append(terms)

    def epoch(self, epoch: int, scores: Any) -> None: ...


def test_a_run_goes_over_to_the_likelihood_and_to_visits_by_pull_when_it_knows_the_noise() -> None:
    made, seen = trainer(chosen(batch=64)), Seen()
    made.observer = seen
    made.method.noise.mean.fill_(0.3)  # type: ignore[union-attr, operator]
    made.method.noise.count.fill_(1000)  # type: ignore[union-attr, operator]
    made.fit()
    assert "q" not in seen.terms[0], "the noise is known from the first step on"
    assert made.method.visits.begun  # type: ignore[union-attr]
    pull = made.method.visits.pull  # type: ignore[union-attr]
    assert len(pull.unique()) > len(pull) / 2
    assert max(seen.steps.values()) - min(seen.steps.values()) <= 1, "an epoch has as many visits as before"
    late = [terms["noise"] for terms in seen.terms[-3:]]
    assert len(set(late)) == 1, "chosen examples are no sample of the labels: the estimate rests"


def test_labels_that_are_wrong_in_few_ways_keep_l_q_with_a_lower_q_and_have_no_visits_by_pull() -> None:
    made, seen = trainer(chosen(batch=64)), Seen()
    made.observer = seen
    noise = made.method.noise
    noise.mean.fill_(0.3)  # type: ignore[union-attr, operator]
    noise.count.fill_(1000)  # type: ignore[union-attr, operator]
    noise.contradictions += 1e6 * torch.eye(10).roll(1, 1)  # type: ignore[union-attr, operator]
    made.fit()
    assert all(terms["q"] == pytest.approx(GENTLE * matching_q(terms["noise"], 10), abs=0.02) for terms in seen.terms)
    assert not made.method.visits.begun  # type: ignore[union-attr]


@cache
def straight_through() -> Trainer:
    made = trainer(chosen(batch=64))
    made.fit()
    assert made.step == 10 * 20, "of ten steps in each of two passes"
    assert made.method.visits.begun  # type: ignore[union-attr]
    return made


@pytest.mark.parametrize("stop", [30, 163, 175])  # before there are passes by pull, in the first and in the second
def test_a_run_with_visits_resumes_bit_for_bit(stop: int) -> None:
    straight, resumed = straight_through(), stopped_and_resumed(chosen(batch=64), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


@pytest.mark.parametrize(("ratio", "epochs"), [(0.85, 4), (0.2, SHORT + 1)])
def test_much_noise_or_a_long_run_leave_everything_as_it_was(ratio: float, epochs: int) -> None:
    """So that what was measured with L_q alone still holds."""
    states = []
    for more in ({}, {"task_loss": "gce", "visits": 1.0}):
        noise = {"name": "symmetric", "ratio": ratio}
        made = trainer(quick("rte", method={**CHOSEN, **more}, noise=noise, train={"epochs": epochs}))
        made.fit()
        states.append({k: v for k, v in made.method.state_dict().items() if not k.startswith("visits.")})
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_strong_views_and_visits_do_not_mix() -> None:
    made = trainer(quick("rte", method={**CHOSEN, "jsd_weight": 1.0, "ecr_weight": 1.0, "views": 1}))
    made.method.noise.mean.fill_(0.2)  # type: ignore[union-attr, operator]
    made.method.noise.count.fill_(1000)  # type: ignore[union-attr, operator]
    made.fit()
    assert not made.method.visits.begun  # type: ignore[union-attr]


@pytest.mark.parametrize("missing", [{"auto": False}, {"task_loss": "gce"}])
def test_without_an_estimate_or_the_likelihood_there_are_no_visits_by_pull(missing: dict[str, Any]) -> None:
    made, seen = trainer(quick("rte", method={**CHOSEN, **missing})), Seen()
    made.observer = seen
    made.fit()
    assert all("q" in terms for terms in seen.terms)
    assert not made.method.visits.begun  # type: ignore[union-attr]


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="visits"):
        quick("rte", method={"visits": 0.0})
