"""The ablations of robust temporal ensembling against the whole objective in float64, and inside the trainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from conftest import quick

from rte.errors import ConfigError
from rte.methods.rte import RobustTemporalEnsembling
from rte.parts.schedules import Linear
from rte.run.build import load_dataset, make_trainer, prepare
from rte.train.distributed import World
from rte.train.order import Slot, epoch_slots
from rte.train.trainer import Trainer
from rte.views.batch import Batch, ViewPlan

INDEX, OTHERS = [7, 2, 9, 0, 5], [1, 4, 3, 7, 8, 11, 6]
T = tiny.at()


def make(build: Any = tiny.linear, **cfg: Any) -> RobustTemporalEnsembling:
    """A method whose teacher, if it has one, already differs from its student."""
    torch.manual_seed(0)
    method = RobustTemporalEnsembling(RobustTemporalEnsembling.Config.model_validate(cfg), tiny.task(build))
    with torch.no_grad():
        for p in method.student.parameters():
            p.add_(torch.randn_like(p))
    return method


def batches(method: RobustTemporalEnsembling) -> Batch:
    plan = method.views(T)
    second = None if plan.second is None else tiny.batch(OTHERS, plan.second, make=lambda i, v: tiny.images(i, v + 50))
    return tiny.batch(INDEX, plan, second=second)


def logits(method: RobustTemporalEnsembling, batch: Batch) -> tuple[Any, list[Any], Any]:
    """In float64, of the student on x and on the strong views, and of whoever makes the targets."""
    x, *views = (tiny.array(method.student(view)) for view in batch.views.chunk(batch.plan.total))
    return x, views, tiny.array((method.teacher or method.student)(batch.x))


def reference(
    batch: Batch, method: RobustTemporalEnsembling, *, q: float, jsd: float, ecr: float, temperature: float, skip: int
) -> float:
    """L_q + jsd JSD + ecr ECR, the terms one by one."""
    x, views, teacher = logits(method, batch)
    total = float(oracles.gce(x, batch.y.tolist(), q).mean())
    if jsd:
        all_ = [oracles.softmax(one) for one in (teacher, *views[:2])]
        total += jsd * float(oracles.jensen_shannon(all_).mean())
    if batch.second is not None:
        _, views, teacher = logits(method, batch.second)
    target = oracles.sharpen(oracles.softmax(teacher), temperature)
    return total + ecr * float(
        oracles.ensemble_consistency(target, [oracles.softmax(view) for view in views[skip:]]).mean()
    )


@pytest.mark.parametrize("ema", [True, False])
@pytest.mark.parametrize("ecr_batch", [None, len(OTHERS)])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("pair", ["shared", "separate"])
@pytest.mark.parametrize("jsd", [0.0, 5.0])
def test_loss_is_the_whole_objective(
    ema: bool, ecr_batch: int | None, temperature: float, pair: str, jsd: float
) -> None:
    method = make(
        q=0.3,
        jsd_weight=jsd,
        ecr_weight=3.0,
        views=3,
        ema=ema,
        ecr_batch=ecr_batch,
        temperature=temperature,
        jsd_pair=pair,
    )
    batch = batches(method)
    skip = 2 if jsd and pair == "separate" and ecr_batch is None else 0
    expected = reference(batch, method, q=0.3, jsd=jsd, ecr=3.0, temperature=temperature, skip=skip)
    terms = method.loss(batch, T)
    assert tiny.number(terms["loss"]) == pytest.approx(expected, rel=1e-5)
    assert ("jsd" in terms, "ecr" in terms) == (jsd > 0, True)


@pytest.mark.parametrize(
    ("cfg", "plan"),
    [
        ({"views": 1}, ViewPlan(strong=2)),
        ({"views": 3, "ecr_batch": 4}, ViewPlan(strong=2, second=ViewPlan(strong=3))),
        ({"views": 1, "ecr_batch": 4, "jsd_weight": 0.0}, ViewPlan(strong=0, second=ViewPlan(strong=1))),
        ({"views": 3, "ecr_batch": 4, "ecr_weight": 0.0}, ViewPlan(strong=2, second=ViewPlan(strong=0))),
        ({"views": 3, "ecr_batch": 4, "jsd_pair": "separate"}, ViewPlan(strong=2, second=ViewPlan(strong=3))),
        ({"views": 3, "jsd_pair": "separate"}, ViewPlan(strong=5)),
        ({"views": 1, "jsd_pair": "separate"}, ViewPlan(strong=3)),
        ({"views": 3, "jsd_pair": "separate", "jsd_weight": 0.0}, ViewPlan(strong=3)),
        ({"views": 3, "jsd_pair": "separate", "ecr_weight": 0.0}, ViewPlan(strong=2)),
    ],
)
def test_as_many_strong_views_are_asked_for_as_the_terms_need(cfg: dict[str, Any], plan: ViewPlan) -> None:
    method = make(**cfg)
    assert method.views(T) == plan
    assert torch.isfinite(torch.as_tensor(method.loss(batches(method), T)["loss"]))


def test_the_separate_pair_is_nothing_to_the_consistency() -> None:
    method = make(views=3, jsd_pair="separate")
    batch = batches(method)
    before = method.loss(batch, T)
    batch.strong(0).add_(1.0)
    after = method.loss(batch, T)
    assert torch.equal(torch.as_tensor(before["ecr"]), torch.as_tensor(after["ecr"]))
    assert not torch.equal(torch.as_tensor(before["jsd"]), torch.as_tensor(after["jsd"]))
    batch.strong(4).add_(1.0)
    last = method.loss(batch, T)
    assert not torch.equal(torch.as_tensor(last["ecr"]), torch.as_tensor(after["ecr"]))
    assert torch.equal(torch.as_tensor(last["jsd"]), torch.as_tensor(after["jsd"]))


def test_a_second_batch_has_its_consistency_to_itself() -> None:
    method = make(views=2, ecr_batch=len(OTHERS))
    (one,) = method.passes(T)
    assert one.second_batch == len(OTHERS)
    assert one.second is not None
    assert one.second.tolist() == list(range(tiny.N))
    batch = batches(method)
    before = method.loss(batch, T)
    batch.views.add_(1.0)
    after = method.loss(batch, T)
    assert torch.equal(torch.as_tensor(before["ecr"]), torch.as_tensor(after["ecr"]))
    assert not torch.equal(torch.as_tensor(before["jsd"]), torch.as_tensor(after["jsd"]))


@pytest.mark.parametrize(("ema", "rows"), [(True, 3 * 5 + 2 * 7), (False, 3 * 5 + 3 * 7)])
def test_both_batches_go_through_the_student_together_and_no_more_of_them_than_needed(ema: bool, rows: int) -> None:
    method, seen = make(tiny.normed, views=2, ecr_batch=len(OTHERS), ema=ema), []
    method.student.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    method.loss(batches(method), T)
    assert seen == [rows]


def test_without_a_teacher_the_student_is_a_constant_target_and_is_reported() -> None:
    method = make(q=0.4, jsd_weight=2.0, ecr_weight=3.0, views=2, ema=False)
    batch, x = batches(method), tiny.images(INDEX)
    torch.as_tensor(method.loss(batch, T)["loss"]).backward()  # type: ignore[no-untyped-call]
    bias = method.student[1].bias
    free = [tiny.array(method.student(view) - bias) for view in batch.views.chunk(3)]
    fixed = tiny.array(method.student(batch.x))

    def objective(b: oracles.Array) -> float:
        weak, *views = (logits + b for logits in free)
        return oracles.rte_objective(weak, views, fixed, batch.y.tolist(), q=0.4, jsd=2.0, ecr=3.0, n=2)

    np.testing.assert_allclose(bias.grad.numpy(), oracles.slope(objective, tiny.array(bias)), atol=1e-5)
    method.after_step(T)
    assert torch.equal(method.predict(x), method.student(x))
    assert method.networks() == {}
    assert not any("teacher" in name for name in method.state_dict())


def test_a_temperature_of_one_is_the_paper_to_the_last_bit() -> None:
    plain, one = make(views=2), make(views=2, temperature=1.0)
    losses = [torch.as_tensor(method.loss(batches(method), T)["loss"]) for method in (plain, one)]
    assert torch.equal(*losses)


@pytest.mark.parametrize("cfg", [{"ecr_batch": 0}, {"temperature": 0.0}, {"temperature": 1.5}, {"jsd_pair": "none"}])
def test_values_out_of_range_are_refused(cfg: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"method.{next(iter(cfg))}"):
        quick(method=cfg)


def test_a_batch_of_ecr_larger_than_the_set_is_refused() -> None:
    with pytest.raises(ConfigError, match="ecr_batch = 13 exceeds the 12 examples"):
        make(ecr_batch=13)


# ---- inside the trainer


VARIANTS: dict[str, dict[str, Any]] = {
    "no EMA": {"ema": False, "warmup": True},
    "no batch-sync": {"ecr_batch": 300, "views": 1},
    "neither": {"ema": False, "ecr_batch": 40},
    "a schedule that begins at nothing": {"ecr_batch": 64, "ecr_weight": Linear(start=0.0, end=2.0).model_dump()},
    "sharpened": {"temperature": 0.5},
    "separate pair": {"jsd_pair": "separate", "views": 3},
}


def trainer(saved: dict[str, Any] | None = None, **settings: Any) -> Trainer:
    config = quick("rte", **settings)
    prepared = prepare(config, load_dataset(config, None))
    keep = {} if saved is None else saved
    return make_trainer(prepared, save=keep.__setitem__)[0]


def same(a: Trainer, b: Trainer) -> bool:
    one, two = a.method.state_dict(), b.method.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("name", VARIANTS)
def test_resume_from_the_middle_of_an_epoch_is_bit_for_bit(name: str) -> None:
    settings = {"method": VARIANTS[name], "net": {"dropout": 0.1}, "train": {"epochs": 1, "batch": 300}}
    straight, first, second = (trainer(**settings) for _ in range(3))
    straight.fit()
    for _ in zip(range(2), first.steps(), strict=False):
        pass
    second.restore(first.checkpoint())
    second.fit()
    assert same(straight, second)
    assert straight.history == second.history


def test_randaugment_makes_the_strong_views() -> None:
    made = [
        trainer(views={"strong": strong}, train={"epochs": 1, "batch": 600}) for strong in ("augmix", "randaugment-tpu")
    ]
    for one in made:
        one.fit()
    assert not same(*made)


@pytest.mark.parametrize(
    ("method", "pieces"),
    [
        ({"jsd_pair": "separate", "views": 3, "temperature": 0.5}, 2),
        ({"views": 3, "ema": False}, 3),
        ({"ecr_batch": 64, "views": 2}, 2),
        ({"ecr_batch": 64, "ema": False}, 4),
    ],
)
def test_less_memory_gives_the_same_step_without_batch_norm(
    method: dict[str, Any], pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rte.nets.build", lambda *a, **k: tiny.Plain())
    whole = trainer(method=method, train={"epochs": 1})
    thrifty = trainer(method=method, train={"epochs": 1, "accumulate": pieces})
    whole.fit()
    thrifty.fit()
    for key, value in whole.method.state_dict().items():
        torch.testing.assert_close(thrifty.method.state_dict()[key], value, rtol=1e-4, atol=1e-5)


def test_an_example_that_comes_again_in_an_epoch_gets_other_views() -> None:
    made = trainer(method={"ecr_batch": 1000, "views": 1}, train={"epochs": 1})
    views: dict[int, dict[int, torch.Tensor]] = {}
    for step, batch in enumerate(made.loader.batches(made._request(t, s) for t, s in moments(made))):
        assert batch.second is not None
        for i, view in zip(batch.second.i.tolist(), batch.second.strong(), strict=True):
            views.setdefault(i, {})[step] = view.clone()
    again = [list(seen.values()) for seen in views.values() if len(seen) > 1]
    assert len(again) > 1000
    differing = [not torch.equal(seen[0], seen[1]) for seen in again]
    assert np.mean(differing) > 0.95  # on so small images some draws change nothing


def moments(made: Trainer) -> Any:
    slots = epoch_slots(made.method.passes(T), n=made.n, batch=made.cfg.batch, seed=made.seed, epoch=0)
    return [(t, slots[t.j]) for t in made._moments(slots)]


def test_more_processes_than_examples_of_a_batch_are_refused() -> None:
    made = trainer(method={"ecr_batch": 2})
    slot = Slot(0, np.arange(256), np.zeros(256, dtype=np.int64), np.arange(2), np.zeros(2, dtype=np.int64))
    made.world = World(0, 3)
    with pytest.raises(ConfigError, match="3 processes cannot share a batch of 2"):
        made._pieces(slot)
    made.cfg = made.cfg.model_copy(update={"accumulate": 4})
    made.world = World(0, 1)
    pieces = made._pieces(slot)
    assert [(len(piece.index), len(piece.second)) for piece in pieces] == [(128, 1)] * 2  # type: ignore[arg-type]
