"""Local intrinsic dimensionality against loops in float64, and on sets whose dimension is known."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import torch

from rte.parts.dimensionality import BATCH, local_dimensionality, mean_dimensionality


def reference(z: oracles.Array, k: int) -> oracles.Array:
    """-k / sum of log(r_j / r_k + 1e-8) over the k nearest others, one example at a time."""
    values = []
    for a in range(len(z)):
        r = sorted(math.dist(z[a], z[b]) for b in range(len(z)) if b != a)[:k]
        values.append(-k / sum(math.log(distance / r[-1] + 1e-8) for distance in r))
    return np.array(values)


@pytest.mark.parametrize(("n", "k"), [(40, 20), (40, 5), (12, 11)])
def test_it_is_the_estimate_of_the_paper(n: int, k: int) -> None:
    z = np.random.default_rng(0).normal(size=(n, 6))
    found = local_dimensionality(torch.tensor(z), k)
    np.testing.assert_allclose(found.numpy(), reference(z, k), rtol=1e-4)


def test_with_fewer_others_than_neighbours_all_of_them_are_taken() -> None:
    z = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(local_dimensionality(z, 20), local_dimensionality(z, 7))


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_cube_has_its_dimension_wherever_it_lies_and_however_large_it_is(dimension: int) -> None:
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.normal(size=(30, dimension)))[0]
    z = torch.tensor(rng.uniform(size=(1500, dimension)) @ plane.T, dtype=torch.float32)
    value = float(local_dimensionality(z, 20).mean())
    assert value == pytest.approx(dimension, rel=0.25)
    assert float(local_dimensionality(100 * z + 5, 20).mean()) == pytest.approx(value, rel=1e-2)


def test_features_far_from_the_origin_keep_their_small_distances() -> None:
    z = np.random.default_rng(1).normal(size=(60, 4))
    near, far = (local_dimensionality(torch.tensor(z + shift, dtype=torch.float32), 20) for shift in (0, 1000))
    torch.testing.assert_close(near, far, rtol=0.02, atol=0.0)


def test_examples_without_a_finite_value_are_left_out_of_the_mean() -> None:
    spread = torch.randn(BATCH - 40, 4, generator=torch.Generator().manual_seed(0))
    z = torch.cat([torch.full((40, 4), 50.0), spread])  # forty in one place: more than twenty neighbours
    torch.manual_seed(0)
    values = local_dimensionality(z, 20)
    assert int((~values.isfinite()).sum()) == 40
    assert mean_dimensionality(z, 20, examples=BATCH) == pytest.approx(float(values[40:].mean()), rel=1e-5)


@pytest.mark.parametrize("z", [torch.zeros(30, 3), torch.zeros(1, 3), torch.zeros(0, 3), torch.full((9, 2), math.nan)])
def test_where_nothing_can_be_said_the_mean_is_zero(z: torch.Tensor) -> None:
    assert mean_dimensionality(z, 20, examples=100) == 0.0


def test_the_mean_is_over_random_examples_in_batches() -> None:
    z = torch.randn(500, 5, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(3)
    rows = torch.randperm(500)[: 2 * BATCH]
    expected = torch.cat([local_dimensionality(z[rows[:BATCH]], 20), local_dimensionality(z[rows[BATCH:]], 20)]).mean()
    torch.manual_seed(3)
    assert mean_dimensionality(z, 20, examples=2 * BATCH) == pytest.approx(float(expected), rel=1e-6)
    torch.manual_seed(4)
    assert mean_dimensionality(z, 20, examples=2 * BATCH) != pytest.approx(float(expected), rel=1e-6)
