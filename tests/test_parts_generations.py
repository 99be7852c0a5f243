"""Networks that follow one another within a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny
import torch
from conftest import quick
from test_methods_rte import make
from test_train_trainer import same, stopped_and_resumed, trainer
from torch import Tensor, nn

from rte.config import RunConfig
from rte.methods.base import Predict, Progress
from rte.parts.generations import LESSON, MIXING, Generations, evened
from rte.parts.mixing import draw
from rte.parts.selftune import AFTER, LIFE, TAUGHT, signal
from rte.parts.selftune import generations as divided
from rte.run.budget import Meter
from rte.views.batch import ViewPlan

# ---- targets


def test_targets_name_each_class_as_often_as_the_labels_do() -> None:
    p = torch.tensor(np.random.default_rng(0).dirichlet([4.0, 1.0, 1.0, 0.3], size=500))
    wanted = torch.tensor([100, 150, 150, 100])
    out = evened(p, wanted)
    assert torch.allclose(out.sum(1), torch.ones(500, dtype=torch.float64))
    assert torch.allclose(out.mean(0), wanted.double() / 500, atol=2e-3)
    odds = (out[:, 0] / out[:, 1]) / (p[:, 0] / p[:, 1])
    assert torch.allclose(odds, odds[0].expand(500)), "classes are weighted, images are not"


def test_targets_that_are_even_stay_and_what_was_never_predicted_does_no_harm() -> None:
    even = torch.eye(4).repeat(3, 1)
    assert torch.allclose(evened(even, torch.ones(4)), even)
    never = torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    out = evened(never, torch.ones(3))
    assert torch.isfinite(out).all()
    assert torch.equal(out[:, 2], torch.zeros(2))


def test_the_loss_is_the_cross_entropy_of_the_targets_on_strong_views_mixed_alike() -> None:
    method = make(generations=2)
    method.heirs.stage.fill_(1)
    p = torch.tensor(np.random.default_rng(1).dirichlet(np.ones(tiny.K), size=tiny.N), dtype=torch.float32)
    method.heirs.targets.copy_(p)
    t, index = tiny.at(9, 10), [7, 2, 9]
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

    logits = method.student(mixed(batch.strong(0)).float()).detach().double().numpy()
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -(mixed(p[index]).numpy() * logs).sum(1).mean()
    assert tiny.number(terms["loss"]) == tiny.number(terms["task"]) == pytest.approx(expected, rel=1e-6)
    assert terms["generation"] == 2.0
    assert "jsd" not in terms


# ---- whose turn it is


def generations(most: int, known: bool = True) -> Generations:
    return Generations(tiny.Y, tiny.K, tiny.linear, most=most, known=known)


def test_a_single_generation_changes_nothing_and_is_not_saved() -> None:
    one, t = generations(1), tiny.at(3, 10)
    assert one.moment(t) is t
    assert not one.state_dict()
    assert not [key for key in make().state_dict() if "heirs" in key]
    assert one.open(tiny.at(9, 10), _never, make(), {}) == {}


def test_each_has_its_part_of_the_run() -> None:
    three, method, seen = generations(3), make(), []
    for epoch in range(20):
        t = tiny.at(epoch, 20)
        begun = three.open(t, tiny.sweep(method), method, {})
        m = three.moment(t)
        seen.append((begun.get("generation"), begun.get("taught"), m.epoch, m.epochs, round(m.fraction, 3)))
    begins = [(epoch, *entry) for epoch, entry in enumerate(seen) if entry[0]]
    assert begins == [
        (7, 2.0, 1.0, 0, 3, 0.0),  # a third is 6.7 epochs; taught to the end of 0.45 of the next third, 9.7
        (10, 2.0, 0.0, 10, 20, 0.5),  # back at the labels, as in the middle of the run
        (13, 3.0, 1.0, 0, 3, 0.0),
        (16, 3.0, 0.0, 10, 20, 0.5),
    ]
    assert [entry[4] for entry in seen[:7]] == pytest.approx([e / (20 / 3) for e in range(7)], abs=1e-3)
    assert [entry[4] for entry in seen[7:10]] == pytest.approx([e / (29 / 3 - 7) for e in range(3)], abs=1e-3)
    assert [entry[4] for entry in seen[16:]] == pytest.approx([0.5 + e / 8 for e in range(4)], abs=1e-3)
    assert three.moment(tiny.at(19, 20, j=5, J=5)).fraction == 1.0


def test_more_generations_than_there_are_epochs_do_no_harm() -> None:
    many, method = generations(9), make()
    for epoch in range(3):
        t = tiny.at(epoch, 3)
        many.open(t, tiny.sweep(method), method, {})
        assert 0.0 <= many.moment(t).fraction <= 1.0
        assert many.moment(t).epochs >= 1


def test_runs_that_leap_over_epochs_are_only_timed() -> None:
    two, method = generations(2), make()
    for epoch in (0, 7, 3, 9):
        assert two.open(tiny.at(epoch, 10), _never, method, {}) == {}
    assert not two.taught


def test_the_next_one_is_new_and_learns_what_its_forerunner_predicts() -> None:
    torch.manual_seed(3)
    nets = [tiny.linear() for _ in range(3)]
    method = make(nets, generations=3, warmup=True)
    assert method.teacher is not None
    asked: list[bool] = []

    def sweep(predict: Predict, *, reported: bool = False) -> Tensor:
        asked.append(reported)
        return tiny.sweep(method)(predict)

    for epoch in range(11):
        method.teacher.update(method.student)
        before, weights = tiny.sweep(method)(method.teacher), method.student[1].weight.clone()
        report = method.epoch_start(tiny.at(epoch, 15), sweep)
        if report.get("taught") != 1.0:
            assert torch.equal(method.student[1].weight, weights), "back at the labels it is still the same"
    assert report == {"generation": 3.0, "taught": 1.0}
    assert asked == [True, True], "as results are reported"
    even = evened(before.softmax(1), torch.bincount(tiny.Y))
    assert torch.allclose(method.heirs.targets, even)
    for own in (method.student, method.teacher.module):
        assert torch.equal(own[1].weight, nets[2][1].weight)
    assert method.teacher.updates == 0
    assert not any(p.requires_grad for p in method.teacher.parameters())


# ---- with `auto`


@pytest.mark.parametrize(
    ("wrong", "epochs", "per_epoch", "count"),
    [
        (0.0, 300, 390, 1),
        (0.47, 999, 390, 1),  # what is taken for 40 %, however long
        (0.65, 136, 390, 6),  # for 60 %, two hours
        (0.87, 9, 390, 1),  # for 80 %, five minutes
        (0.87, 20, 390, 1),  # ten
        (0.87, 41, 390, 3),  # half an hour
        (0.87, 136, 390, 10),  # two hours
        (0.87, 200, 39, 1),  # 5,000 images: no time for two
    ],
)
def test_how_many_by_the_noise_and_the_time(wrong: float, epochs: int, per_epoch: int, count: int) -> None:
    got, first = divided(wrong, 10, epochs, per_epoch)
    assert got == count
    if count == 1:
        assert first == 1.0
    else:
        assert first * epochs == pytest.approx(max(LIFE[0] * signal(wrong, 10) ** 1.5, LIFE[1] / per_epoch))
        each = (1 - first) * epochs / (count - 1)
        assert each >= AFTER[0]
        assert each * per_epoch >= AFTER[1]


@pytest.mark.parametrize(("wrong", "most", "count"), [(0.72, 20, 11), (0.72, 3, 3), (0.1, 20, 1)])
def test_auto_divides_the_run_by_the_noise(wrong: float, most: int, count: int) -> None:
    method = make(auto=True, generations=most)
    assert method.noise is not None
    t = tiny.at(10, 144, step=10 * 390, steps=144 * 390)
    assert method.moment(t) is t
    method.noise.mean.fill_(wrong)
    method.noise.count.fill_(t.step)
    report = method.epoch_start(t, _never)
    first = max(LIFE[0] * signal(wrong, tiny.K) ** 1.5, LIFE[1] / 390) if count > 1 else 144.0
    assert (report["generations"], report["first"]) == (count, pytest.approx(first / 144))
    assert method.moment(t).epochs == round(first)
    assert method.moment(t).fraction == pytest.approx(10 / first)
    method.heirs.stage.fill_(1)
    method.heirs.began.fill_(first / 144)
    assert count == 1 or method.moment(t).epochs == round(LESSON * (144 - first) / (count - 1))


def test_without_a_number_there_are_as_many_as_auto_finds_and_without_auto_one() -> None:
    assert make(generations=0).heirs.most == 1
    method = make(auto=True, generations=0)
    assert method.heirs.count == 1, "before it is known"
    method.heirs.open(tiny.at(1, 10), _never, method, {"generations": 12.0, "first": 0.5})
    assert method.heirs.count == 12


def test_auto_learns_faster_what_another_network_says() -> None:
    method = make(auto=True, generations=2)
    assert method.noise is not None
    method.noise.mean.fill_(0.7)
    t = tiny.at(9, 10)
    assert method.pace(t) == signal(0.7, tiny.K)
    method.heirs.stage.fill_(1)
    assert method.pace(t) == signal(TAUGHT, tiny.K)
    assert method.price(t) == 1.0
    method.heirs.stage.fill_(2)
    assert method.pace(t) == signal(0.7, tiny.K), "and what the labels say at their pace again"
    assert make(generations=2).pace(t) == 1.0


# ---- in a run

RATE = {"kind": "triangle", "peak": 0.02, "start": 0.004, "top": 0.5, "end": 0.0}


def run_of(count: int, **method: Any) -> RunConfig:
    """Twelve steps in epochs of two."""
    train = {"epochs": 6, "examples": 320, "batch": 128, "holdout": 0.2, "lr": RATE}
    return quick("rte", method={"generations": count, "views": 3, **method}, train=train)


class Seen:
    def __init__(self) -> None:
        self.rates: list[float] = []
        self.terms: list[set[str]] = []

    def step(self, t: Progress, terms: dict[str, float]) -> None:
        self.rates.append(terms["lr"])
        self.terms.append(set(terms))

    def epoch(self, epoch: int, scores: Any) -> None: ...


def test_schedules_begin_again_with_each_generation() -> None:
    made, seen = trainer(run_of(3)), Seen()
    made.observer = seen
    made.fit()
    first, taught, back = [0.004, 0.012, 0.02, 0.01], [0.004, 0.02 * (1 - 5 / 9) / 0.5], [0.02, 0.01]
    assert seen.rates == pytest.approx(first + taught + back + taught + back, rel=1e-4)
    labels = ["jsd" in terms for terms in seen.terms]
    assert labels == [True] * 4 + [False] * 2 + [True] * 2 + [False] * 2 + [True] * 2


@pytest.mark.parametrize(
    ("stop", "more"),
    [(3, {}), (4, {}), (5, {}), (7, {}), (9, {}), (5, {"ecr_batch": 32}), (7, {"ema": False})],
)
def test_a_run_of_three_generations_resumes_bit_for_bit(stop: int, more: dict[str, Any]) -> None:
    straight = trainer(run_of(3, **more))
    straight.fit()
    assert straight.method.heirs.number == 2  # type: ignore[union-attr]
    resumed = stopped_and_resumed(run_of(3, **more), stop)
    assert same(straight.method, resumed.method)
    assert resumed.history == straight.history


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    one, many = trainer(run_of(1, auto=True)), trainer(run_of(0, auto=True))
    one.fit()
    many.fit()
    assert many.method.noise.length > 0, "it has been decided"  # type: ignore[union-attr]
    assert same(one.method.student, many.method.student)  # type: ignore[arg-type]
    assert one.history == many.history


def test_timing_begins_no_generation() -> None:
    made = trainer(run_of(2))
    Meter(made).seconds(12)
    assert not made.method.heirs.taught  # type: ignore[union-attr]


def _never(predict: Predict, *, reported: bool = False) -> Tensor:
    raise AssertionError("nobody's turn ends here")


def test_networks_follow_in_the_order_they_are_made_in_though_the_run_was_resumed() -> None:
    def make_one(number: int) -> nn.Module:
        net = tiny.linear()
        nn.init.constant_(net[1].bias, float(number))  # type: ignore[index, arg-type]
        return net

    def line() -> Generations:
        numbers = iter(range(1, 9))
        return Generations(tiny.Y, tiny.K, lambda: make_one(next(numbers)), most=4)

    straight, again, method = line(), line(), make()
    starts = []
    for epoch in range(16):
        straight.open(tiny.at(epoch, 20), tiny.sweep(method), method, {})
        starts.append(method.student[1].bias[0].item())  # type: ignore[index]
        if epoch == 12:
            again.load_state_dict(straight.state_dict())
    assert [starts[epoch] for epoch in (5, 10, 15)] == [1.0, 2.0, 3.0]
    nn.init.zeros_(method.student[1].bias)  # type: ignore[index, arg-type]
    for epoch in range(13, 16):
        again.open(tiny.at(epoch, 20), tiny.sweep(method), method, {})
    assert method.student[1].bias[0].item() == 3.0  # type: ignore[index]
