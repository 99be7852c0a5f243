"""Robust temporal ensembling against the whole objective in float64, and what its views and its teacher do."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import STILL, accuracy

from rte.methods.rte import RobustTemporalEnsembling
from rte.parts.schedules import Linear, Sine, constant
from rte.views.batch import Batch, ViewPlan

INDEX = [7, 2, 9, 0, 5]


def make(build: Any = tiny.linear, **cfg: Any) -> RobustTemporalEnsembling:
    """A method whose teacher already differs from its student."""
    torch.manual_seed(0)
    method = RobustTemporalEnsembling(RobustTemporalEnsembling.Config.model_validate(cfg), tiny.task(build))
    with torch.no_grad():
        for p in method.student.parameters():
            p.add_(torch.randn_like(p))
    return method


def reference(method: RobustTemporalEnsembling, batch: Batch, q: float, jsd: float, ecr: float, n: int) -> float:
    method.eval()
    x, *views = (tiny.array(method.student(view)) for view in batch.views.chunk(batch.plan.total))
    teacher = tiny.array(method.teacher(batch.x))
    return oracles.rte_objective(x, views, teacher, batch.y.tolist(), q=q, jsd=jsd, ecr=ecr, n=n)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("jsd", "ecr"), [(12.0, 1.0), (0.0, 3.0), (5.0, 0.0), (0.0, 0.0)])
def test_loss_is_the_whole_objective(n: int, q: float, jsd: float, ecr: float) -> None:
    method = make(q=q, jsd_weight=jsd, ecr_weight=ecr, views=n)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx(reference(method, batch, q, jsd, ecr, n), rel=1e-5)
    weighted = jsd * tiny.number(terms.get("jsd", 0.0)) + ecr * tiny.number(terms.get("ecr", 0.0))
    assert tiny.number(terms["task"]) + weighted == pytest.approx(tiny.number(terms["loss"]), rel=1e-5)
    assert ("jsd" in terms, "ecr" in terms) == (jsd > 0, ecr > 0)
    assert terms["q"] == q


def test_the_terms_differ_so_that_the_comparison_means_something() -> None:
    method = make(q=0.3, jsd_weight=12, ecr_weight=1, views=5)
    terms = method.loss(tiny.batch(INDEX, method.views(tiny.at())), tiny.at())
    assert len({round(tiny.number(terms[name]), 4) for name in ("task", "jsd", "ecr")}) == 3
    assert all(tiny.number(terms[name]) > 1e-3 for name in ("task", "jsd", "ecr"))


@pytest.mark.parametrize(
    ("n", "jsd", "ecr", "strong"),
    [
        (10, 12.0, 1.0, 10),
        (1, 12.0, 1.0, 2),  # the divergence needs a pair
        (1, 0.0, 1.0, 1),
        (5, 12.0, 0.0, 2),  # without consistency only the pair
        (5, 0.0, 0.0, 0),
        (2.6, 0.0, 1.0, 3),  # a search may leave the whole numbers
    ],
)
def test_as_many_strong_views_are_asked_for_as_the_terms_need(n: float, jsd: float, ecr: float, strong: int) -> None:
    assert make(views=n, jsd_weight=jsd, ecr_weight=ecr).views(tiny.at()) == ViewPlan(weak=1, strong=strong)


def test_a_broken_number_of_views_is_rounded_alike_in_the_plan_and_in_the_loss() -> None:
    method = make(q=0.0, views=2.6, jsd_weight=0.0)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    expected = reference(method, batch, 0.0, 0.0, 1.0, 3)
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)
    method.cfg = method.cfg.model_copy(update={"jsd_weight": constant(1.0), "views": constant(1.6)})
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    expected = reference(method, batch, 0.0, 1.0, 1.0, 2)
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(expected, rel=1e-5)


def test_views_follow_a_schedule() -> None:
    method = make(views=Linear(start=2, end=6), jsd_weight=0.0)
    assert [method.views(tiny.at(epoch)).strong for epoch in (0, 5, 10)] == [2, 4, 6]


def test_one_view_of_consistency_ignores_the_second_of_the_pair() -> None:
    method = make(views=1)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    before = method.loss(batch, tiny.at())
    batch.strong(1).add_(1.0)
    after = method.loss(batch, tiny.at())
    assert torch.equal(torch.as_tensor(before["ecr"]), torch.as_tensor(after["ecr"]))
    assert not torch.equal(torch.as_tensor(before["jsd"]), torch.as_tensor(after["jsd"]))


def test_q_follows_its_schedule() -> None:
    method = make(q=Sine(scale=0.6), jsd_weight=0.0, ecr_weight=0.0)
    for epoch, q in ((0, 0.0), (8, 0.6), (13, 0.6 * np.sin(13 * np.pi / 16))):
        t = tiny.at(epoch, 13)
        batch = tiny.batch(INDEX, method.views(t))
        terms = method.loss(batch, t)
        assert terms["q"] == pytest.approx(q)
        assert tiny.number(terms["loss"]) == pytest.approx(reference(method, batch, q, 0, 0, 0), rel=1e-5)


def test_settings_replaced_during_a_run_count_at_once() -> None:
    method = make(views=2)
    method.cfg = method.cfg.model_copy(update={"jsd_weight": constant(0.0), "q": constant(1.0), "views": constant(3)})
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    assert batch.plan.strong == 3
    assert tiny.number(method.loss(batch, tiny.at())["loss"]) == pytest.approx(
        reference(method, batch, 1.0, 0, 1, 3), rel=1e-5
    )


def test_the_student_sees_all_views_as_one_batch_and_the_teacher_the_weak_one() -> None:
    method = make(tiny.normed, views=3)
    seen: dict[str, list[int]] = {"student": [], "teacher": []}
    method.student.register_forward_pre_hook(lambda _, args: seen["student"].append(len(args[0])))
    method.teacher.module.register_forward_pre_hook(lambda _, args: seen["teacher"].append(len(args[0])))
    method.train()
    teacher = tiny.copy_state(method.teacher)
    method.loss(tiny.batch(INDEX, method.views(tiny.at())), tiny.at())
    assert seen == {"student": [4 * len(INDEX)], "teacher": [len(INDEX)]}
    assert not tiny.changed(method.teacher, teacher)  # in evaluation mode: its batch-norm statistics stay


def test_the_gradient_is_that_of_the_objective_with_a_constant_teacher() -> None:
    method = make(tiny.linear, q=0.4, jsd_weight=2.0, ecr_weight=3.0, views=2)
    batch = tiny.batch(INDEX, method.views(tiny.at()))
    torch.as_tensor(method.loss(batch, tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.student[1].bias
    teacher = tiny.array(method.teacher(batch.x))
    free = [tiny.array(method.student(view) - bias) for view in batch.views.chunk(3)]

    def objective(b: oracles.Array) -> float:
        x, *views = (logits + b for logits in free)
        return oracles.rte_objective(x, views, teacher, batch.y.tolist(), q=0.4, jsd=2.0, ecr=3.0, n=2)

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-5)
    assert all(p.grad is None for p in method.teacher.parameters())


@pytest.mark.parametrize(("warmup", "decays"), [(False, [0.9, 0.9]), (True, [0.1, 2 / 11])])
def test_after_a_step_the_teacher_moves_towards_the_student(warmup: bool, decays: list[float]) -> None:
    method = make(decay=0.9, warmup=warmup, views=2)
    update, t = tiny.sgd(method), tiny.at()
    weight = method.student[1].weight
    start, values = tiny.array(method.teacher.module[1].weight), []
    for _ in decays:
        method.step(tiny.batch(INDEX, method.views(t)), t, update)
        method.after_step(t)
        values.append(tiny.array(weight))
    expected = oracles.moving_average(start, values, decays)
    np.testing.assert_allclose(tiny.array(method.teacher.module[1].weight), expected, rtol=1e-5, atol=1e-7)
    assert not np.allclose(expected, values[-1], atol=1e-3)


def test_the_teacher_is_reported_and_the_student_evaluated_beside_it() -> None:
    method, x = make(), tiny.images(INDEX)
    assert torch.equal(method.predict(x), method.teacher(x))
    assert torch.equal(method.networks()["student"](x), method.student(x))
    assert not torch.equal(method.predict(x), method.student(x))


@pytest.mark.parametrize(
    ("cfg", "passes"),
    [
        ({"views": 10}, 3 * 11 + 1),  # the student on all views and back, the teacher on the weak one
        ({"views": 4, "jsd_pair": "separate"}, 3 * 7 + 1),
        ({"views": 4, "ema": False}, 3 * 5),
        ({"jsd_weight": 0.0, "ecr_weight": 0.0}, 3),  # nobody asks the teacher
    ],
)
def test_what_a_step_costs(cfg: dict[str, Any], passes: int) -> None:
    assert make(**cfg).cost(tiny.at()) == passes


@pytest.mark.slow
def test_it_is_ahead_of_cross_entropy_on_noisy_digits() -> None:
    ours, theirs = accuracy("rte", **STILL), accuracy("ce", **STILL)  # 79 to 81 % and 63 to 69 % on three seeds
    assert min(ours) > max(theirs)
