"""The self-tuning method: its objective against a reference, what it makes of its policy, and whole runs of it."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from conftest import quick
from test_train_trainer import same, stopped_and_resumed, trainer
from torch import Tensor

from rte.config import RunConfig
from rte.errors import ConfigError
from rte.methods.auto import MIXING, SelfTuning
from rte.methods.base import Predict, Progress, Task
from rte.parts.mixing import draw
from rte.parts.noise_rate import ENOUGH
from rte.recipes import policy
from rte.recipes.policy import ASSUMED, GENTLE, LONG, SHORT, TAUGHT, Stage, matching_q, signal
from rte.recipes.stages import evened
from rte.train.trainer import Trainer
from rte.views.batch import ViewPlan

INDEX = [7, 2, 9, 0, 5]
K = tiny.K


def make(build: Any = tiny.linear, *, wrong: float | None = None, even: bool = True, **cfg: Any) -> SelfTuning:
    """A method whose teacher already differs from its student; `wrong` is the noise it knows of, if any."""
    torch.manual_seed(0)
    method = SelfTuning(SelfTuning.Config.model_validate(cfg), tiny.task(build))
    with torch.no_grad():
        for p in method.student.parameters():
            p.add_(torch.randn_like(p))
    if wrong is not None:
        method.tuner.noise.mean.fill_(wrong)
        method.tuner.noise.count.fill_(ENOUGH)
    if not even:
        method.tuner.noise.contradictions += 1e6 * torch.eye(K).roll(1, 1)
    return method


def late(epochs: int, fraction: float = 0.6) -> Progress:
    """In the second half of a run, when batches are no longer looked at."""
    return tiny.at(int(fraction * epochs), epochs)


def settled(method: SelfTuning, t: Progress) -> SelfTuning:
    """After a beginning of an epoch that decided."""
    method.epoch_start(t, tiny.sweep(method))
    assert not method.tuner.undecided
    return method


def logits(net: Any, x: Tensor) -> Any:
    return tiny.array(net(x))


# ---- the objective


def test_before_the_noise_is_known_it_is_l_q_with_the_q_that_was_set() -> None:
    method = make(q=0.3)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    assert batch.plan == ViewPlan()
    terms = method.loss(batch, tiny.at())
    expected = oracles.gce(logits(method.student, batch.x), batch.y.tolist(), 0.3).mean()
    assert tiny.number(terms["loss"]) == tiny.number(terms["task"]) == pytest.approx(expected, rel=1e-6)
    assert terms["q"] == 0.3
    assert "jsd" not in terms
    assert "ecr" not in terms


@pytest.mark.parametrize("wrong", [0.2, 0.6])
def test_then_q_goes_by_the_noise(wrong: float) -> None:
    method, t = make(wrong=wrong), late(SHORT + 1)
    batch = tiny.batch(INDEX, method.views(t))
    terms, q = method.loss(batch, t), matching_q(wrong, K)
    expected = oracles.gce(logits(method.student, batch.x), batch.y.tolist(), q).mean()
    assert (terms["q"], terms["noise"]) == pytest.approx((q, wrong))
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)


def test_in_short_runs_it_is_the_likelihood_of_the_labels_and_gradients_are_remembered() -> None:
    method, t = make(wrong=0.3), late(SHORT)
    batch = tiny.batch(INDEX, method.views(t))
    f = logits(method.student, batch.x)
    terms = method.loss(batch, t)
    expected = oracles.forward_corrected(f, batch.y.tolist(), 0.3).mean()
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert "q" not in terms
    gradient = method.sampling.gradient
    for row, i in enumerate(INDEX):

        def at(b: oracles.Array, row: int = row) -> float:
            return float(oracles.forward_corrected((f[row] + b)[None], [int(batch.y[row])], 0.3)[0])

        slope = oracles.slope(at, np.zeros(K))[int(batch.y[row])]
        assert float(gradient[i]) == pytest.approx(-slope, abs=1e-5)
    assert set(gradient[[k for k in range(tiny.N) if k not in INDEX]].tolist()) == {1.0}, "of those not seen"


@pytest.mark.parametrize(("even", "likelihood", "part"), [(False, True, GENTLE), (True, False, 1.0)])
def test_in_short_runs_without_likelihood_it_is_l_q(even: bool, likelihood: bool, part: float) -> None:
    method, t = make(wrong=0.3, even=even, likelihood=likelihood), late(SHORT)
    batch = tiny.batch(INDEX, method.views(t))
    terms, q = method.loss(batch, t), part * matching_q(0.3, K)
    expected = oracles.gce(logits(method.student, batch.x), batch.y.tolist(), q).mean()
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert method.sampling.gradient.eq(1).all()


@pytest.mark.parametrize("wrong", [0.3, 0.6])
@pytest.mark.parametrize("fraction", [0.3, 0.7])
def test_where_views_pay_one_strong_view_carries_all_terms(wrong: float, fraction: float) -> None:
    t = late(2 * LONG, fraction)
    method = settled(make(wrong=wrong, jsd_weight=5.0, ecr_weight=3.0), t)
    assert method.views(t) == ViewPlan(strong=1)
    batch = tiny.batch(INDEX, method.views(t))
    seen: list[int] = []
    method.student.register_forward_hook(lambda net, x, out: seen.append(len(x[0])))
    known = method.tuner.noise.rate
    terms = method.loss(batch, t)
    assert seen == [len(INDEX)], "the student is spared the weak view"
    assert (method.tuner.noise.rate != known) == (fraction < 0.5), "batches are looked at in the first half"
    f, teacher = logits(method.student, batch.strong(0)), logits(method.teacher, batch.x)
    left = signal(known, K) if fraction < 0.5 else max(signal(known, K), signal(ASSUMED, K))
    p, target = oracles.softmax(f), oracles.softmax(teacher)
    expected = float(oracles.gce(f, batch.y.tolist(), matching_q(known, K)).mean())
    expected += left * 5.0 * float(oracles.jensen_shannon([target, p]).mean())
    expected += left * 3.0 * float(oracles.ensemble_consistency(target, [p]).mean())
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert terms["q"] == pytest.approx(matching_q(known, K))


def test_the_gradient_reaches_the_student_alone() -> None:
    t = late(2 * LONG)
    method = settled(make(wrong=0.4), t)
    method.loss(tiny.batch(INDEX, method.views(t)), t)["loss"].backward()  # type: ignore[union-attr, no-untyped-call]
    assert all(p.grad is not None for p in method.student.parameters())
    assert all(p.grad is None for p in method.teacher.parameters())


def test_while_a_network_is_taught_it_is_the_cross_entropy_of_the_targets_on_strong_views_mixed() -> None:
    method, t, index = taught(), late(10), [7, 2, 9]
    p = torch.tensor(np.random.default_rng(1).dirichlet(np.ones(K), size=tiny.N), dtype=torch.float32)
    method.tuner.stages.targets = p
    assert method.views(t) == ViewPlan(strong=1)
    batch = tiny.batch(index, method.views(t))
    torch.manual_seed(8)
    terms = method.loss(batch, t)
    torch.manual_seed(8)
    weight, order = draw(3, MIXING, dominant=True)
    assert 0.5 <= weight < 0.99, "a draw that mixes"
    assert not torch.equal(order, torch.arange(3))

    def mixed(values: Tensor) -> Tensor:
        return weight * values.double() + (1 - weight) * values[order].double()

    f = logits(method.student, mixed(batch.strong(0)).float())
    logs = f - np.log(np.exp(f).sum(1, keepdims=True))
    expected = -(mixed(p[index]).numpy() * logs).sum(1).mean()
    assert tiny.number(terms["loss"]) == tiny.number(terms["task"]) == pytest.approx(expected, rel=1e-6)
    assert terms["network"] == 1
    assert set(terms) == {"loss", "task", "network"}


def taught() -> SelfTuning:
    """A method whose second network is under way."""
    method = make(wrong=0.7)
    method.tuner.stages.plan([Stage(False, 0.3), Stage(True, 1.0)])
    method.tuner.stages.now.fill_(1)
    return method


# ---- rate, cost, teacher


def test_learning_slows_down_by_the_noise_and_not_while_a_network_is_taught() -> None:
    assert make().clock(tiny.at()).rate == signal(ASSUMED, K)
    assert make(wrong=0.6).clock(late(10)).rate == pytest.approx(0.2)
    assert taught().clock(late(10)).rate == signal(TAUGHT, K)


def test_schedules_go_by_the_stage() -> None:
    method, t = taught(), tiny.at(6, 10)
    method.tuner.stages.began.fill_(0.3)
    method.tuner.stages.epoch.fill_(3)
    moment = method.clock(t).moment
    assert (moment.epoch, moment.epochs) == (3, 7)
    assert moment.fraction == pytest.approx(3 / 7)


def test_what_a_step_costs() -> None:
    t = late(2 * LONG)
    assert make(wrong=0.4).cost(late(SHORT)) == 3
    assert settled(make(wrong=0.4), t).cost(t) == 4, "the teacher looks at the weak view"
    assert taught().cost(t) == 3


def test_the_teacher_follows_the_student_and_is_reported() -> None:
    method, x = make(decay=0.5, warmup=False), tiny.images(INDEX)
    before = tiny.array(method.teacher.module[1].bias)
    method.after_step(tiny.at())
    middle = (before + tiny.array(method.student[1].bias)) / 2
    np.testing.assert_allclose(tiny.array(method.teacher.module[1].bias), middle, rtol=1e-5)
    assert torch.equal(method.predict(x), method.teacher(x))
    assert torch.equal(method.networks()["student"](x), method.student(x))


# ---- networks that follow one another


def test_the_next_network_is_new_and_learns_what_the_one_before_predicts() -> None:
    torch.manual_seed(3)
    made = [tiny.linear() for _ in range(3)]
    asked: list[bool] = []

    def sweep(predict: Predict, *, reported: bool = False) -> Tensor:
        asked.append(reported)
        return tiny.sweep(method)(predict)

    method = SelfTuning(SelfTuning.Config(), Task(tiny.Y, K, lambda k=0: deepcopy(made[k])))
    method.tuner.settled.copy_(torch.tensor([0.7, 15.0, 1.0]))
    method.tuner.stages.plan([Stage(False, 0.32), Stage(True, 0.52), Stage(False, 0.72), Stage(True, 1.0)])
    reports = {}
    for epoch in range(15):
        with torch.no_grad():
            method.student[1].weight.add_(0.1)  # type: ignore[union-attr, operator]
        method.after_step(tiny.at(epoch, 15))
        before, weights = tiny.sweep(method)(method.teacher), method.student[1].weight.clone()
        report = method.epoch_start(tiny.at(epoch, 15), sweep)
        if report:
            reports[epoch] = report
        if report.get("taught"):
            number = int(report["network"])
            even = evened(before.softmax(1), torch.bincount(tiny.Y))
            torch.testing.assert_close(method.tuner.stages.targets, even)
            for own in (method.student, method.teacher.module):
                assert torch.equal(own[1].weight, made[number][1].weight)  # type: ignore[index]
            assert method.teacher.updates == 0
        else:
            assert torch.equal(method.student[1].weight, weights), "back at the labels it is still the same"
    assert reports == {
        5: {"network": 1, "taught": True},  # the nearest to 0.32 of 15
        8: {"network": 1, "taught": False},
        11: {"network": 2, "taught": True},
    }
    assert asked == [True, True], "as results are reported"


# ---- in a run


def config(**settings: Any) -> RunConfig:
    return quick("auto", **{"noise": {"name": "symmetric", "ratio": 0.2}, **settings})


class Seen:
    """How many steps each epoch has, and which terms they tell of."""

    def __init__(self) -> None:
        self.steps: Counter[int] = Counter()
        self.terms: list[dict[str, float]] = []

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.steps[t.epoch] += 1
        self.terms.append(terms)

    def epoch(self, epoch: int, scores: Any) -> None: ...


def knowing(made: Trainer, wrong: float) -> SelfTuning:
    """A run that knows of its noise from the first step on."""
    method = made.method
    assert isinstance(method, SelfTuning)
    method.tuner.noise.mean.fill_(wrong)
    method.tuner.noise.count.fill_(1000)
    return method


@pytest.fixture
def _as_if_images_were_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lest so few as tests have keep examples from being drawn by importance."""
    monkeypatch.setattr(policy, "MANY", 1)


SHORT_RUN = {"epochs": 10, "batch": 64}


@pytest.mark.usefixtures("_as_if_images_were_many")
@pytest.mark.core
def test_a_short_run_goes_over_to_the_likelihood_and_to_importance_sampling() -> None:
    made, seen = trainer(config(train=SHORT_RUN)), Seen()
    made.observer = seen
    method = knowing(made, 0.3)
    made.fit()
    assert "q" not in seen.terms[0], "the noise is known from the first step on"
    assert method.sampling.begun
    assert len(method.sampling.gradient.unique()) > tiny.N
    assert max(seen.steps.values()) - min(seen.steps.values()) <= 1, "an epoch has as many steps as before"
    late = [terms["noise"] for terms in seen.terms[-3:]]
    assert len(set(late)) == 1, "examples drawn by importance are no sample of the labels: the estimate rests"


@pytest.mark.usefixtures("_as_if_images_were_many")
def test_wrong_labels_that_go_to_few_classes_keep_l_q_with_a_lower_q_and_everybody_is_seen() -> None:
    made, seen = trainer(config(train=SHORT_RUN)), Seen()
    made.observer = seen
    method = knowing(made, 0.3)
    method.tuner.noise.contradictions += 1e6 * torch.eye(10).roll(1, 1)
    made.fit()
    for terms in seen.terms:
        assert terms["q"] == pytest.approx(GENTLE * matching_q(terms["noise"], 10), abs=0.02)
    assert not method.sampling.begun


@cache
def sampled() -> Trainer:
    made = trainer(config(train=SHORT_RUN))
    made.fit()
    assert made.step == 10 * 20, "of ten steps in each of two passes"
    assert made.method.sampling.begun  # type: ignore[union-attr]
    return made


@pytest.mark.usefixtures("_as_if_images_were_many")
@pytest.mark.parametrize("stop", [30, 163, 175])  # before examples are drawn, in the first pass and in the second
def test_a_run_with_importance_sampling_resumes_bit_for_bit(stop: int) -> None:
    straight, resumed = sampled(), stopped_and_resumed(config(train=SHORT_RUN), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


@pytest.mark.usefixtures("_as_if_images_were_many")
@pytest.mark.parametrize(("ratio", "epochs"), [(0.85, 4), (0.2, SHORT + 1)])
def test_much_noise_or_a_long_run_have_nothing_of_it(ratio: float, epochs: int) -> None:
    states = []
    for more in ({}, {"likelihood": False, "sampling": 1.0}):
        noise = {"name": "symmetric", "ratio": ratio}
        made = trainer(quick("auto", method=more, noise=noise, train={"epochs": epochs}))
        made.fit()
        states.append({k: v for k, v in made.method.state_dict().items() if not k.startswith("sampling.")})
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


RATE = {"kind": "triangle", "peak": 0.02, "start": 0.004, "top": 0.5, "end": 0.0}
STAGED = {"epochs": 6, "examples": 320, "batch": 128, "holdout": 0.2, "lr": RATE}  # twelve steps in epochs of two


@pytest.fixture
def _three_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a long run with much noise has them, in thirds, but in twelve steps; with strong views from the first."""
    thirds = tuple(Stage(k % 2 == 1, (1 + k / 2) / 3) for k in range(5))
    monkeypatch.setattr(policy, "divide", lambda *args: thirds)
    monkeypatch.setattr(policy, "LONG", 1)


@pytest.mark.usefixtures("_three_networks")
def test_schedules_begin_again_with_each_network() -> None:
    made, seen = trainer(config(train=STAGED, method={"likelihood": False})), Seen()
    made.observer = seen
    method = knowing(made, 0.4)
    made.fit()
    assert method.tuner.stages.network == 2
    labels = ["task" in terms and "network" not in terms for terms in seen.terms]
    assert labels == [True] * 4 + [False] * 2 + [True] * 2 + [False] * 2 + [True] * 2
    rates = [terms["lr"] for terms in seen.terms]
    taught_rate = signal(TAUGHT, 10)
    for begin in (4, 8):
        assert rates[begin] == pytest.approx(0.004 * taught_rate), "a stage begins as a run does"
        assert rates[begin + 2] == pytest.approx(0.02 * signal(seen.terms[begin + 2]["noise"], 10), rel=0.05), (
            "and goes back to the labels as in the middle of one"
        )


@pytest.mark.usefixtures("_three_networks")
@pytest.mark.parametrize("stop", [3, 4, 5, 7, 9])
def test_a_run_of_three_networks_resumes_bit_for_bit(stop: int) -> None:
    straight = three()
    assert straight.method.tuner.stages.network == 2  # type: ignore[union-attr]
    resumed = stopped_and_resumed(config(train=STAGED), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


@cache
def three() -> Trainer:
    made = trainer(config(train=STAGED))
    made.fit()
    return made


def test_a_limit_of_networks_that_is_not_reached_changes_nothing() -> None:
    one, many = trainer(config(method={"stages": 1})), trainer(config())
    one.fit()
    many.fit()
    assert not many.method.tuner.undecided, "it has been decided"  # type: ignore[union-attr]
    assert same(one.method, many.method)
    assert one.history == many.history


@pytest.mark.parametrize("stop", [4, 5, 8])
def test_a_run_gets_its_views_by_the_noise_it_finds_and_resumes_with_them(
    stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "LONG", 5)
    noisy = {"noise": {"name": "symmetric", "ratio": 0.85}, "train": {"steps": 15, "epochs": 3}}
    straight, seen = trainer(config(**noisy)), Seen()
    straight.observer = seen
    straight.fit()
    strong = ["ecr" in terms for terms in seen.terms]
    assert strong == [False] * 5 + [True] * 10, "three epochs of such noise are effectively longer than five"
    resumed = stopped_and_resumed(config(**noisy), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


@pytest.mark.parametrize("bad", [{"sampling": 0.0}, {"stages": -1}, {"q": 1.5}, {"decay": 1.0}])
def test_values_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"method.{next(iter(bad))}"):
        quick("auto", method=bad)
