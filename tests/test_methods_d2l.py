"""D2L: the turn, what happens at it, and the loss after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch
from learning import accuracy

from rte.methods import d2l
from rte.methods.d2l import DimensionalityDriven

INDEX = [3, 11, 4, 6, 0]
FALLING = [9.0, 8.0, 7.0, 6.0, 5.5, 5.1, 5.0, 4.9, 5.0, 4.9]


def make(build: Any = tiny.linear, **cfg: Any) -> DimensionalityDriven:
    torch.manual_seed(0)
    return DimensionalityDriven(DimensionalityDriven.Config.model_validate(cfg), tiny.task(build))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scores to come; each epoch takes the next."""
    scores: list[float] = []
    monkeypatch.setattr(d2l, "mean_dimensionality", lambda *a, **k: scores.pop(0))
    return scores


def play(method: DimensionalityDriven, scores: list[float], measured: list[float], first: int = 0) -> list[bytes]:
    """Epochs of a run of twenty, in each of which the weights change; returns what they were at each start."""
    measured[:] = scores
    seen = []
    for epoch in range(first, first + len(scores)):
        seen.append(method.net[1].bias.detach().numpy().tobytes())
        method.epoch_start(tiny.at(epoch, 20), tiny.sweep(method))
        with torch.no_grad():
            method.net[1].bias += 1.0
    return seen


def turn(scores: Sequence[float], wait: int, window: int) -> int | None:
    """The first epoch whose score lies two standard deviations above the mean of the window, as the authors look."""
    for epoch in range(len(scores)):
        before = scores[max(0, epoch - window) : epoch]
        if epoch >= wait + window and scores[epoch] - np.mean(before) > 2 * np.std(before):
            return epoch
    return None


@pytest.mark.parametrize("rise", [4, 6, 8, 9, 11, None])
@pytest.mark.parametrize(("wait", "window"), [(0.0, 0.15), (0.2, 0.15), (0.2, 0.25), (0.4, 0.3)])
def test_the_turn_is_the_first_rise_above_the_window_after_the_wait(
    rise: int | None, wait: float, window: float, measured: list[float]
) -> None:
    scores = [*FALLING, 4.8, 4.9, 4.8]
    if rise is not None:
        scores[rise] += 4.0
    expected = turn(scores, round(wait * 20), round(window * 20))
    method = make(wait=wait, window=window)
    play(method, list(scores), measured)
    assert int(method.turned) == (-1 if expected is None else expected)


def test_the_paper_length_compares_with_five_epochs_and_a_short_run_with_three(measured: list[float]) -> None:
    for epochs, window in ((120, 5), (12, 3), (300, 12)):
        method = make(wait=0.0)
        measured[:] = [5.0, 5.1] * window + [9.0]
        for epoch in range(window):
            method.epoch_start(tiny.at(epoch, epochs), tiny.sweep(method))
        assert not method._rises(9.0, tiny.at(window - 1, epochs))
        assert method._rises(9.0, tiny.at(window, epochs))


def test_at_the_turn_the_weights_of_the_epoch_before_come_back_and_are_kept_no_longer(measured: list[float]) -> None:
    method = make(wait=0.0, window=0.15)
    began = play(method, [5.0, 5.1, 5.0, 5.1], measured)
    measured[:] = [9.0, 9.5]
    method.epoch_start(tiny.at(4, 20), tiny.sweep(method))
    assert int(method.turned) == 4
    assert method.net[1].bias.detach().numpy().tobytes() == began[3]
    assert list(method.restarted(tiny.at(4, 20))) == list(method.net.parameters())
    copy = tiny.copy_state(method.before)
    with torch.no_grad():
        method.net[1].bias += 1.0
    method.epoch_start(tiny.at(5, 20), tiny.sweep(method))
    assert int(method.turned) == 4  # once and for all
    assert list(method.restarted(tiny.at(5, 20))) == []
    assert not tiny.changed(method.before, copy)


def test_alpha_falls_with_the_run_and_with_the_dimensionality(measured: list[float]) -> None:
    method = make(wait=0.0, window=0.15)
    play(method, [5.0, 5.1, 5.0, 5.1], measured)
    assert float(method.alpha) == 1.0
    for epoch, score, lowest in ((4, 9.0, 5.0), (5, 8.0, 5.0), (6, 4.0, 4.0), (19, 4.4, 4.0)):
        measured[:] = [score]
        method.epoch_start(tiny.at(epoch, 20), tiny.sweep(method))
        assert float(method.alpha) == pytest.approx(math.exp(-epoch / 20 * score / lowest), rel=1e-6)


def test_alpha_has_a_floor_where_one_is_set(measured: list[float]) -> None:
    method = make(wait=0.0, window=0.15, least=0.7)
    play(method, [5.0, 5.1, 5.0, 5.1, 9.0, 9.0], measured)
    assert float(method.alpha) == pytest.approx(0.7)


def test_a_score_that_cannot_be_measured_is_that_of_the_epoch_before(measured: list[float]) -> None:
    method = make()
    measured[:] = [0.0, 5.0, 0.0]
    assert method.epoch_start(tiny.at(0, 20), tiny.sweep(method)) == {}
    assert method.epoch_start(tiny.at(1, 20), tiny.sweep(method))["dimensionality"] == 5.0
    assert method.epoch_start(tiny.at(2, 20), tiny.sweep(method))["dimensionality"] == 5.0


def test_a_resumed_run_turns_at_the_same_epoch_to_the_same_weights(measured: list[float]) -> None:
    method = make(wait=0.0, window=0.15)
    play(method, [5.0, 5.1, 5.0, 5.1], measured)
    resumed = make(wait=0.0, window=0.15)
    resumed.load_state_dict(tiny.copy_state(method))
    for one in (method, resumed):
        play(one, [9.0, 8.0], measured, first=4)
    assert not tiny.changed(resumed, tiny.copy_state(method))
    assert int(resumed.turned) == 4


@pytest.mark.parametrize("alpha", [1.0, 0.7, 0.37])
def test_the_loss_is_the_cross_entropy_with_the_mixed_target(alpha: float) -> None:
    method, batch = make(), tiny.batch(INDEX)
    method.alpha.fill_(alpha)
    logits = tiny.array(method.predict(batch.x))
    p, own = oracles.softmax(logits), np.eye(tiny.K)[logits.argmax(1)]
    target = alpha * np.eye(tiny.K)[batch.y.numpy()] + (1 - alpha) * own
    loss = torch.as_tensor(method.loss(batch, tiny.at())["loss"])
    assert tiny.number(loss) == pytest.approx(-(target * np.log(p)).sum(1).mean(), rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(method.net[1].bias.grad.numpy(), (p - target).mean(0), atol=1e-6)  # a constant target


def test_features_are_measured_where_the_network_has_any(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    monkeypatch.setattr(d2l, "mean_dimensionality", lambda z, *a, **k: widths.append(z.shape[1]) or 1.0)
    for build in (tiny.normed, tiny.linear):
        method = make(build)
        method.epoch_start(tiny.at(), tiny.sweep(method))
    assert widths == [8, tiny.K]


def test_noisy_digits_are_learnt_better_than_by_cross_entropy() -> None:
    assert np.mean(accuracy("d2l")) > np.mean(accuracy("ce")) + 0.03  # measured: 0.936 and 0.859
