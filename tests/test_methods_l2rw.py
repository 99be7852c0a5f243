"""Learning to reweight: weights against finite differences of the trusted loss after a step, and what is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from conftest import quick
from learning import accuracy
from test_train_trainer import trainer

from rte.errors import ConfigError
from rte.methods.base import Task
from rte.methods.l2rw import LearningToReweight

NOISY, TRUSTED = [5, 11, 4, 6, 8], [0, 1, 2, 3]


def make(build: Any = tiny.linear, **cfg: Any) -> LearningToReweight:
    torch.manual_seed(0)
    return LearningToReweight(LearningToReweight.Config.model_validate(cfg), tiny.task(build, trusted=TRUSTED))


def both(**rest: Any) -> Any:
    return tiny.batch(NOISY, second=tiny.batch(TRUSTED, **rest), **rest)


def reference(weight: oracles.Array, bias: oracles.Array) -> tuple[oracles.Array, oracles.Array]:
    """Weights of a linear network's examples, by small steps along each example's gradient; and their losses."""
    images = {
        name: tiny.array(tiny.images(rows)).reshape(len(rows), -1)
        for name, rows in (("noisy", NOISY), ("trusted", TRUSTED))
    }
    y = {"noisy": [int(tiny.Y[i]) for i in NOISY], "trusted": [int(tiny.Y[i]) for i in TRUSTED]}

    def losses(which: str, w: oracles.Array, b: oracles.Array) -> oracles.Array:
        return -oracles.log_likelihood(images[which] @ w.T + b, y[which])

    p = oracles.softmax(images["noisy"] @ weight.T + bias)
    u, step = [], 1e-5
    for k, label in enumerate(y["noisy"]):
        by_logit = p[k] - np.eye(tiny.K)[label]
        grad_w, grad_b = np.outer(by_logit, images["noisy"][k]), by_logit
        ahead, back = (losses("trusted", weight - s * grad_w, bias - s * grad_b).mean() for s in (step, -step))
        u.append(-(ahead - back) / (2 * step))
    positive = np.maximum(u, 0)
    return positive / positive.sum(), losses("noisy", weight, bias)


def test_the_loss_is_weighted_by_how_much_each_example_lowers_the_trusted_loss() -> None:
    method = make()
    weights, losses = reference(tiny.array(method.net[1].weight), tiny.array(method.net[1].bias))
    assert 0 < (weights > 0).sum() < len(NOISY)  # some help, some do not
    terms = method.loss(both(), tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx((weights * losses).sum(), rel=1e-4)
    assert tiny.number(terms["task"]) == pytest.approx(losses.mean(), rel=1e-5)
    assert tiny.number(terms["kept"]) == pytest.approx((weights > 0).mean())


def test_the_weights_are_constants_for_the_gradient() -> None:
    method = make()
    weights, _ = reference(tiny.array(method.net[1].weight), tiny.array(method.net[1].bias))
    torch.as_tensor(method.loss(both(), tiny.at())["loss"]).backward()  # type: ignore[no-untyped-call]
    p = oracles.softmax(tiny.array(method.predict(tiny.images(NOISY))))
    by_logit = p - np.eye(tiny.K)[[int(tiny.Y[i]) for i in NOISY]]
    np.testing.assert_allclose(method.net[1].bias.grad.numpy(), weights @ by_logit, atol=1e-5)


def test_where_nothing_helps_nothing_is_learnt() -> None:
    """Examples that no trusted one has a parameter in common with: a table with a row for each."""
    table = tiny.Table(torch.zeros(tiny.N, tiny.K))
    method = make([table])
    loss = torch.as_tensor(method.loss(both(make=tiny.numbers), tiny.at())["loss"])
    loss.backward()  # type: ignore[no-untyped-call]
    assert tiny.number(loss) == 0.0
    assert table.rows.grad is not None
    assert not table.rows.grad.any()


def test_batch_norm_remembers_the_noisy_batch_alone() -> None:
    one, two = make(tiny.normed), make(tiny.normed)
    one.loss(both(), tiny.at())
    two.net(tiny.batch(NOISY).x)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(one.net.body[2], name), getattr(two.net.body[2], name))
    assert one.net.body[2].momentum == two.net.body[2].momentum == 0.1


def test_a_step_is_the_same_under_autocast_up_to_its_precision() -> None:
    exact, half = make(tiny.normed), make(tiny.normed)
    with torch.autocast("cpu", torch.bfloat16):
        terms = half.step(both(), tiny.at(), tiny.sgd(half))
    expected = exact.step(both(), tiny.at(), tiny.sgd(exact))
    assert tiny.number(terms["loss"]) == pytest.approx(tiny.number(expected["loss"]), rel=0.1)


def test_the_trusted_examples_are_the_second_stream_in_batches_of_their_own() -> None:
    (only,) = make().passes(tiny.at())
    assert only.index is None
    assert only.second is not None
    assert only.second.tolist() == TRUSTED
    assert only.second_batch == 4
    (only,) = make(trusted_batch=3).passes(tiny.at())
    assert only.second_batch == 3


def test_too_few_trusted_examples_are_refused_and_a_trained_state_needs_none() -> None:
    few = Task(tiny.Y, tiny.K, lambda k=0: tiny.linear(), trusted=torch.tensor([0, 1]))
    with pytest.raises(ConfigError, match=r"2 trusted examples for 4 classes; set train\.trusted to at least 4"):
        LearningToReweight(LearningToReweight.Config(), few)
    none = LearningToReweight(LearningToReweight.Config(), Task(tiny.Y, tiny.K, lambda k=0: tiny.linear()))
    none.load_state_dict(make().state_dict())
    with pytest.raises(ConfigError, match=r"needs trusted examples; set train\.trusted"):
        none.loss(tiny.batch(NOISY), tiny.at())


def test_a_run_without_trusted_examples_is_refused_before_it_begins() -> None:
    with pytest.raises(ConfigError, match=r"l2rw needs some examples .* set train\.trusted"):
        trainer(quick("l2rw", train={"trusted": 0}))


def test_noisy_digits_are_learnt_better_than_by_cross_entropy_that_has_the_same_right_labels() -> None:
    common: dict[str, Any] = {"net": {"name": "compact-16"}, "train": {"trusted": 40}}
    assert np.mean(accuracy("l2rw", **common)) > np.mean(accuracy("ce", **common)) + 0.01  # measured: 0.929, 0.900
