"""CleanNet as a method: when it is fitted, what it weighs, and who has to be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.errors import ConfigError
from rte.methods import cleannet
from rte.methods.cleannet import LabelVerification

COSINES = torch.linspace(-1, 1, tiny.N)


def make(build: Any = tiny.linear, trusted: tuple[int, ...] = (0, 1, 2), **cfg: Any) -> LabelVerification:
    torch.manual_seed(0)
    return LabelVerification(LabelVerification.Config.model_validate(cfg), tiny.task(build, trusted=trusted))


def test_loss_is_the_weighted_mean_over_the_batch() -> None:
    method, batch = make(), tiny.batch([3, 1, 8])
    method.weights[[3, 1, 8]] = torch.tensor([0.25, 1.0, 0.0])
    nll = -oracles.log_likelihood(tiny.array(method.predict(batch.x)), batch.y.tolist())
    terms = method.loss(batch, tiny.at())
    assert tiny.number(terms["loss"]) == pytest.approx((0.25 * nll[0] + nll[1]) / 3, rel=1e-5)
    assert tiny.number(terms["task"]) == pytest.approx(nll.mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("weighting", "expected"), [("soft", COSINES.clamp(min=0)), ("hard", (COSINES >= 0.1).float())]
)
def test_weights_are_the_formula_and_trusted_examples_count_in_full(
    weighting: str, expected: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleannet, "agreement", lambda *a, **k: COSINES.clone())
    method = make(weighting=weighting)
    before = method.trust(tiny.sweep(method))
    assert bool((method.weights == 1).all())
    method.epoch_start(tiny.at(5), tiny.sweep(method))
    expected = expected.clone()
    expected[:3] = 1.0
    torch.testing.assert_close(method.weights, expected)
    torch.testing.assert_close(method.trust(tiny.sweep(method)), expected)
    assert not torch.equal(before, expected)


@pytest.mark.parametrize(
    ("warmup", "every", "fits"), [(0.3, 0.2, [3, 5, 7, 9]), (0.0, 0.5, [1, 6]), (0.8, 0.0, [8, 9])]
)
def test_fits_come_after_the_warm_up_and_then_at_their_distance(
    warmup: float, every: float, fits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleannet, "agreement", lambda *a, **k: COSINES.clone())
    method, found = make(warmup=warmup, every=every), []
    for epoch in range(10):
        restored = make(warmup=warmup, every=every)
        restored.load_state_dict(method.state_dict())
        method = restored  # each epoch is one of a resumed run
        if method.epoch_start(tiny.at(epoch), tiny.sweep(method)):
            found.append(epoch)
    assert found == fits


@pytest.mark.parametrize("trusted", [(), (4,)])
def test_without_trusted_examples_it_is_refused(trusted: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=rf"got {len(trusted)}; set train\.trusted"):
        make(trusted=trusted)


def test_trusted_examples_alone_are_what_it_learns_right_labels_from(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    monkeypatch.setattr(
        cleannet, "agreement", lambda z, y, trusted, k, **rest: asked.update(trusted=trusted, y=y, **rest) or COSINES
    )
    make(trusted=(5, 9), steps=7, threshold=0.2).epoch_start(tiny.at(5), tiny.sweep(make()))
    assert asked["trusted"].tolist() == [5, 9]
    assert torch.equal(asked["y"], tiny.Y)
    assert (asked["steps"], asked["margin"]) == (7, 0.2)


def test_it_learns_from_noisy_labels_better_than_cross_entropy() -> None:
    """Measured: 94 % (soft; 91 % hard) against 87 %, with 40 trusted examples of 400 and fits of 200 steps."""
    settings: dict[str, Any] = {"seeds": (0, 1), "train": {"trusted": 40}}
    ours = accuracy("cleannet", method={"steps": 200, "every": 1.0}, **settings)
    assert np.mean(ours) > np.mean(accuracy("ce", **settings))
