"""Importance sampling: chances by the gradient, draws that keep to them, and state that goes on with who was drawn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rte.recipes.sampling import BEGIN, FLOOR, ImportanceSampling, chances, systematic


@given(
    gradient=st.lists(st.floats(0, 1), min_size=2, max_size=60),
    share=st.sampled_from([0.5, 1 / 3, 0.25, 0.8]),
)
def test_chances_rise_with_the_gradient_and_have_the_share_for_a_mean(gradient: list[float], share: float) -> None:
    found = chances(torch.tensor(gradient), share).numpy()
    assert found.mean() == pytest.approx(share, rel=1e-6)
    assert found.min() >= FLOOR * share
    assert found.max() <= 1.0
    order = np.argsort(gradient, kind="stable")
    assert (np.diff(found[order]) >= -1e-12).all()
    free = (found < 1.0) & (np.array(gradient) > 1e-3)
    slopes = (found[free] - FLOOR * share) / np.array(gradient)[free]
    assert slopes.size == 0 or slopes.max() == pytest.approx(slopes.min(), rel=1e-3), "a + b gradient, one b for all"


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
    sampling = ImportanceSampling(8, 0.5)
    for fraction, wanted in ((BEGIN - 0.01, True), (0.9, False)):
        sampling.open(fraction, wanted=wanted)
        assert not sampling.begun
        assert sampling.passes() == [None]


def test_an_epoch_is_divided_into_passes_with_draws_of_their_own() -> None:
    sampling = ImportanceSampling(1000, 0.25)
    sampling.remember(torch.arange(500), torch.zeros(500))
    torch.manual_seed(0)
    sampling.open(0.5, wanted=True)
    parts = [part for part in sampling.passes() if part is not None]
    assert [len(part) for part in parts] == [250] * 4
    assert len({tuple(part.tolist()) for part in parts}) == 4
    assert np.mean([float((part < 500).float().mean()) for part in parts]) == pytest.approx(FLOOR / 2, abs=0.04)
    sampling.open(0.5, wanted=False)
    assert sampling.passes() == [None], "the end of it, once it is unwanted"


def test_who_was_drawn_and_what_is_remembered_is_part_of_the_state() -> None:
    sampling, other = ImportanceSampling(30, 0.5), ImportanceSampling(30, 0.5)
    sampling.remember(torch.tensor([3, 7]), torch.tensor([0.25, 0.5], dtype=torch.float64))
    sampling.open(0.5, wanted=True)
    other.load_state_dict(sampling.state_dict())
    assert other.gradient[[2, 3, 7]].tolist() == [1.0, 0.25, 0.5]
    for mine, theirs in zip(sampling.passes(), other.passes(), strict=True):
        assert mine is not None
        assert theirs is not None
        assert torch.equal(mine, theirs)


def test_a_share_of_one_is_everybody() -> None:
    sampling = ImportanceSampling(30, 1.0)
    sampling.open(0.5, wanted=True)
    assert sampling.passes() == [None]
