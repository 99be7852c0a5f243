"""Noisy cross-validation: the estimate, who is held out, who is selected and dropped, who is seen afterwards."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import torch

from rte.parts.cross_validation import (
    CANDIDATE,
    DROPPED,
    SELECTED,
    CrossValidation,
    rate_after_selection,
    rate_from_agreement,
)

K = 4


def searched(agreement: float, classes: int) -> float:
    """The authors' search: the smallest of 0.001, 0.002 ... at which the expected agreement is no larger."""
    eps = 0.0
    while (1 - eps) ** 2 + eps**2 / (classes - 1) > agreement and eps < 1:
        eps += 0.001
    return eps


@pytest.mark.parametrize("classes", [2, 10, 100])
@pytest.mark.parametrize("eps", [0.0, 0.05, 0.2, 0.4, 0.49])
def test_the_estimate_is_the_authors_search(classes: int, eps: float) -> None:
    agreement = (1 - eps) ** 2 + eps**2 / (classes - 1)
    found = rate_from_agreement(agreement, classes)
    assert found == pytest.approx(eps, abs=1e-9)
    assert abs(found - searched(agreement, classes)) <= 0.001 + 1e-9


def test_agreement_by_chance_or_less_is_the_highest_rate() -> None:
    assert rate_from_agreement(0.1, 10) == pytest.approx(0.9)
    assert rate_from_agreement(0.0, 10) == pytest.approx(0.9)
    assert rate_from_agreement(1.0, 10) == 0.0


@pytest.mark.parametrize(("symmetric", "expected"), [(True, 0.16 / (0.16 + 9 * 0.36)), (False, 0.16 / (0.16 + 0.36))])
def test_what_is_selected_is_cleaner(symmetric: bool, expected: float) -> None:
    assert rate_after_selection(0.4, 10, symmetric=symmetric) == pytest.approx(expected)
    assert rate_after_selection(0.0, 10, symmetric=symmetric) == 0.0


def made(n: int = 40, seed: int = 0, *, symmetric: bool = True) -> tuple[CrossValidation, torch.Tensor, torch.Tensor]:
    """Halved once; labels, and logits of a network."""
    labels, rng = CrossValidation(n, symmetric=symmetric), np.random.default_rng(seed)
    torch.manual_seed(seed)
    labels.halve()
    return labels, torch.tensor(rng.integers(0, K, n)), torch.tensor(rng.normal(size=(n, K)))


@pytest.mark.parametrize("n", [2, 3, 40, 41])
def test_candidates_are_halved_at_random(n: int) -> None:
    labels, _, _ = made(n)
    counts = torch.bincount(labels.part, minlength=2).tolist()
    assert sum(counts) == n
    assert abs(counts[0] - counts[1]) <= 1
    before = labels.part.clone()
    labels.halve()
    assert n < 4 or not torch.equal(before, labels.part)


def test_a_network_learns_what_is_selected_and_its_half() -> None:
    labels, _, _ = made()
    labels.group[:10], labels.group[10:20] = SELECTED, DROPPED
    labels.halve()
    assert (labels.part[:20] == -1).all()
    for k in range(2):
        learnt = labels.learnt_by(k).tolist()
        assert set(range(10)) <= set(learnt)
        assert len(learnt) == 20
        assert not set(range(10, 20)) & set(learnt)
    assert set(labels.learnt_by(0).tolist()) & set(labels.learnt_by(1).tolist()) == set(range(10))


def test_each_network_judges_the_half_it_has_not_seen() -> None:
    labels, y, logits = made()
    labels.validate(0, logits, y)
    agrees = logits.argmax(1) == y
    losses = -oracles.log_likelihood(logits.numpy(), y.tolist())
    unseen = labels.part == 1
    assert torch.equal(labels.agrees, agrees & unseen)
    np.testing.assert_allclose(labels.losses[unseen], losses[unseen.numpy()], rtol=1e-5)
    assert not labels.losses[~unseen].any()
    assert float(labels.best[0]) == pytest.approx(float(agrees[unseen].float().mean()))
    assert float(labels.best[1]) == -1.0


@pytest.mark.parametrize(
    ("eps", "symmetric", "sought"), [(0.2, True, 4), (0.4, True, 2), (0.7, True, 1), (0.2, False, 1)]
)
def test_the_best_epoch_counts_in_early_iterations_and_the_last_in_late_ones(
    eps: float, symmetric: bool, sought: int
) -> None:
    for iteration in range(5):
        labels, y, logits = made(symmetric=symmetric)
        labels.eps.fill_(eps)
        labels.iteration.fill_(iteration)
        good = 5.0 * torch.nn.functional.one_hot(y, K)
        labels.validate(0, good, y)
        labels.validate(0, logits, y)
        unseen = labels.part == 1
        best_kept = bool(labels.agrees[unseen].all())
        assert best_kept == (iteration < sought), iteration


def test_selection_is_the_formula() -> None:
    """Noise of 25 %: a third as many as were selected are dropped, in each half the largest losses."""
    labels, y, logits = made(60)
    logits[:15] += 4.0 * torch.nn.functional.one_hot(y[:15], K)
    for k in range(2):
        labels.validate(k, logits, y)
    part, losses = labels.part.tolist(), -oracles.log_likelihood(logits.numpy(), y.tolist())
    agree = (logits.argmax(1) == y).tolist()
    labels.select(K, 0.25)
    expected = [CANDIDATE] * 60
    for k in range(2):
        half = [i for i in range(60) if part[i] == k]
        number = int(0.25 / 0.75 * sum(agree[i] for i in half))
        for i in sorted(half, key=lambda i: -losses[i])[:number]:
            expected[i] = DROPPED
        for i in half:
            if agree[i]:
                expected[i] = SELECTED
    assert labels.group.tolist() == expected
    assert {CANDIDATE, SELECTED, DROPPED} == set(expected)
    assert int(labels.iteration) == 1


def test_nothing_is_dropped_where_nothing_was_selected_or_noise_is_not_symmetric() -> None:
    """int(...) = 0 as a slice [-0:] is everything, in the authors' code."""
    labels, y, _ = made()
    for k in range(2):
        labels.validate(k, 5.0 * torch.nn.functional.one_hot((y + 1) % K, K), y)
    labels.select(K, None)
    assert (labels.group == CANDIDATE).all()
    assert float(labels.eps) == pytest.approx(1 - 1 / K)
    labels, y, logits = made(symmetric=False)
    for k in range(2):
        labels.validate(k, logits, y)
    labels.select(K, 0.4)
    assert not (labels.group == DROPPED).any()
    assert (labels.group == SELECTED).any()


def test_the_rate_is_that_of_the_first_iteration() -> None:
    labels, y, logits = made(200)
    logits += 2.0 * torch.nn.functional.one_hot(y, K)
    for k in range(2):
        labels.validate(k, logits, y)
    share = float((logits.argmax(1) == y).double().mean())
    labels.select(K, None)
    first = float(labels.eps)
    assert first == pytest.approx(rate_from_agreement(share, K), rel=1e-5)
    labels.halve()
    labels.select(K, None)
    assert float(labels.eps) == first


def test_later_some_candidates_are_seen_too() -> None:
    labels, _, _ = made()
    labels.group[:10], labels.group[30:] = SELECTED, DROPPED
    labels.draw(wider=False)
    assert labels.seen.nonzero().squeeze(1).tolist() == list(range(10))
    draws = []
    for _ in range(2):
        labels.draw(wider=True)
        assert labels.seen[:10].all()
        assert labels.seen[10:30].sum() == 5, "at most half as many"
        assert not labels.seen[30:].any()
        draws.append(labels.seen.clone())
    assert not torch.equal(*draws)


def test_everybody_is_seen_where_nothing_was_selected() -> None:
    labels, _, _ = made()
    labels.draw(wider=False)
    assert labels.seen.all()
