"""Two Gaussians and two betas against a slow EM, against peers, and on values that are no mixture."""

from __future__ import annotations

import math
import warnings

import numpy as np
import oracles
import pytest
import torch

from rte.errors import TrainingError
from rte.parts.mixture import BINS, two_betas, two_gaussians, upper_share

SHAPES = [
    (120, 80, 0.3, 2.5, 0.2, 0.6),
    (100, 100, 1.0, 2.0, 0.5, 0.5),
    (20, 180, 0.1, 3.0, 0.05, 1.0),
    (180, 20, 0.1, 3, 0.05, 1),
]


def losses(low: int, high: int, m0: float, m1: float, s0: float, s1: float) -> np.ndarray:
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(m0, s0, low), random.normal(m1, s1, high)])


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_slow_reference(shape: tuple[int, int, float, float, float, float]) -> None:
    values = losses(*shape)
    found = two_gaussians(torch.from_numpy(values))
    np.testing.assert_allclose(found.numpy(), oracles.two_gaussians(values), atol=1e-9)


@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_the_number_of_rounds_is_bounded(rounds: int) -> None:
    values = losses(*SHAPES[1])
    found = two_gaussians(torch.from_numpy(values), iterations=rounds, tolerance=0.0)
    np.testing.assert_allclose(found.numpy(), oracles.two_gaussians(values, rounds, 0.0), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_agrees_with_scikit_learn(shape: tuple[int, int, float, float, float, float]) -> None:
    from sklearn.mixture import GaussianMixture

    values = losses(*shape)
    scaled = ((values - values.min()) / (values.max() - values.min()))[:, None]
    peer = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten rounds need not converge
        peer.fit(scaled)
    truth = peer.predict_proba(scaled)[:, peer.means_.argmin()]
    np.testing.assert_allclose(two_gaussians(torch.from_numpy(values)).numpy(), truth, atol=0.05)  # other 2-means


def test_clear_groups_are_told_apart_whatever_the_scale() -> None:
    values = torch.tensor(losses(30, 10, 0.5, 9.0, 0.1, 0.1))
    for scaled in (values, values * 1e-6, values * 1e6 - 5):
        found = two_gaussians(scaled)
        assert found[:30].min() > 0.99
        assert found[30:].max() < 0.01


def test_the_order_does_not_matter_and_nothing_is_random() -> None:
    values = torch.tensor(losses(*SHAPES[0]))
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    first = two_gaussians(values)
    torch.manual_seed(2)
    assert torch.equal(two_gaussians(values), first)
    torch.testing.assert_close(two_gaussians(values[order]), first[order])


@pytest.mark.parametrize(
    "values", [[0.7] * 5, [0.0, 0.0], [3.0], [], [1.0, 1.0 + 1e-8]], ids=["equal", "zero", "one", "none", "rounding"]
)
def test_values_that_do_not_differ_are_all_trusted(values: list[float]) -> None:
    found = two_gaussians(torch.tensor(values, dtype=torch.float64))
    assert found.tolist() == [1.0] * len(values)


def test_two_values_and_one_outlier_are_enough() -> None:
    assert two_gaussians(torch.tensor([0.0, 5.0])).tolist() == pytest.approx([1.0, 0.0], abs=1e-6)
    found = two_gaussians(torch.tensor([0.1] * 99 + [50.0]))
    assert found[:99].min() > 0.99
    assert found[99] < 0.01


def test_it_keeps_the_dtype_and_takes_no_gradient() -> None:
    values = torch.tensor(losses(*SHAPES[0]), dtype=torch.float32, requires_grad=True)
    found = two_gaussians(values)
    assert found.dtype == torch.float32
    assert not found.requires_grad
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(TrainingError, match="not finite"):
        two_gaussians(torch.tensor([0.0, bad]))


# ---- betas


def skewed(low: int, high: int) -> np.ndarray:
    """Losses of right labels pile up near 0, those of wrong ones far away."""
    random = np.random.default_rng(1)
    return np.concatenate([random.gamma(0.6, 0.3, low), random.gamma(9.0, 0.5, high)])


def slow_betas(values: np.ndarray, rounds: int = 10) -> tuple[float, float, list[float]]:
    """Limits, and the posterior of the upper component in the middle of each bin, by scipy's densities in loops."""
    from scipy import stats

    low, high = np.percentile(values, 5), np.percentile(values, 95)
    v = [min(max((x - low) / (high - low), 1e-4), 1 - 1e-4) for x in values if low <= x <= high]
    parts = [(0.5, 1.0, 2.0), (0.5, 2.0, 1.0)]

    def posterior(x: float) -> list[float]:
        joint = [w * float(stats.beta.pdf(x, a, b)) for w, a, b in parts]
        return [j / sum(joint) for j in joint]

    for _ in range(rounds):
        post, fitted = [posterior(x) for x in v], []
        for c in range(2):
            n = sum(p[c] for p in post)
            mean = sum(p[c] * x for p, x in zip(post, v, strict=True)) / n
            spread = sum(p[c] * (x - mean) ** 2 for p, x in zip(post, v, strict=True)) / n
            alpha = mean * (mean * (1 - mean) / spread - 1)
            fitted.append((n / len(v), alpha, alpha * (1 - mean) / mean))
        parts = fitted
    upper = max(range(2), key=lambda c: parts[c][1] / (parts[c][1] + parts[c][2]))
    table = [posterior((k + 0.5) / 100)[upper] for k in range(100)]
    best = table.index(max(table))
    return float(low), float(high), table[:best] + [table[best]] * (100 - best)


@pytest.mark.parametrize("sizes", [(300, 200), (60, 400), (450, 40)])
def test_two_betas_are_the_slow_reference(sizes: tuple[int, int]) -> None:
    values = skewed(*sizes)
    low, high, table = slow_betas(values)
    found = two_betas(torch.from_numpy(values))
    assert [float(found.low), float(found.high)] == pytest.approx([low, high])
    np.testing.assert_allclose(found.table.numpy(), table, atol=1e-4)


def test_one_round_of_two_betas_is_weighted_moments() -> None:
    values = skewed(200, 200)
    np.testing.assert_allclose(
        two_betas(torch.from_numpy(values), iterations=1).table.numpy(), slow_betas(values, 1)[2], atol=1e-5
    )


def test_the_upper_share_finds_the_wrong_labels_and_never_falls() -> None:
    values = torch.tensor(skewed(300, 200))
    share = upper_share(values, two_betas(values))
    wrong = torch.arange(500) >= 300
    assert float((share > 0.5)[wrong].float().mean()) > 0.85
    assert float((share > 0.5)[~wrong].float().mean()) < 0.1
    along = upper_share(torch.linspace(0, 30, 500, dtype=torch.float64), two_betas(values))
    top = along == along.max()
    assert bool(top[int(top.nonzero()[0]) :].all()), "flat behind its maximum, beyond the largest value too"


def test_values_outside_of_what_was_fitted_count_as_its_ends() -> None:
    betas = two_betas(torch.tensor(skewed(300, 200)))
    ends = upper_share(torch.tensor([-5.0, 1e9], dtype=torch.float64), betas)
    assert torch.equal(ends, betas.table[[0, BINS - 1]])


@pytest.mark.parametrize("values", [[], [2.0], [0.7] * 50])
def test_without_a_difference_nothing_is_suspect(values: list[float]) -> None:
    given = torch.tensor(values)
    share = upper_share(given, two_betas(given))
    assert not share.any()
    assert share.dtype == given.dtype


def test_two_values_alone_are_told_apart() -> None:
    given = torch.tensor([0.1] * 40 + [4.0] * 20)
    share = upper_share(given, two_betas(given))
    assert share.isfinite().all()
    assert float(share[-1]) > float(share[0])


def test_betas_refuse_what_is_not_finite() -> None:
    with pytest.raises(TrainingError, match="not finite"):
        two_betas(torch.tensor([1.0, float("nan")]))
