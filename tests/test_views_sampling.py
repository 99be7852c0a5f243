"""Draws by position: independent of each other and of everything they should not depend on."""

from __future__ import annotations

import numpy as np

from rte.views.sampling import branch, pick, scramble, states, uniform


def some(n: int = 1000, *, seed: int = 0, epoch: int = 0, stream: int = 0) -> np.ndarray:
    return states(np.arange(n), seed=seed, epoch=epoch, stream=stream)


def test_scramble_is_splitmix64() -> None:
    """The first outputs published for the seed 1234567."""
    state = np.array([1234567], np.uint64)
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert branch(state, 5)[0].tolist() == expected
    assert scramble(np.zeros(1, np.uint64))[0] == 0


def test_seed_epoch_stream_and_index_all_matter() -> None:
    base = some()
    assert len(np.unique(base)) == len(base)
    for other in (some(seed=1), some(epoch=1), some(stream=1)):
        assert not np.intersect1d(base, other).size


def test_a_state_is_that_of_its_example_in_any_order() -> None:
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(states(order, seed=3, epoch=2, stream=1), some(seed=3, epoch=2, stream=1)[order])


def test_more_children_leave_the_first_as_they_were() -> None:
    np.testing.assert_array_equal(branch(some(), 9)[:, :4], branch(some(), 4))
    np.testing.assert_array_equal(uniform(some(), 9)[:4], uniform(some(), 4))


def test_draws_are_uniform_and_unrelated() -> None:
    u = uniform(branch(some(5000), 2), 4).transpose(1, 2, 0).reshape(5000, 8)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.stack([np.bincount((column * 20).astype(int), minlength=20) for column in u.T])
    assert ((counts - 250) ** 2 / 250).sum(
        1
    ).max() < 55  # chi-square with 19 degrees of freedom: one in 2 * 10^5 exceeds it
    related = np.corrcoef(np.concatenate([u, u[np.arange(5000) - 1]], 1).T) - np.eye(16)
    assert np.abs(related).max() < 0.07  # five standard errors


def test_pick_covers_all_numbers_and_no_more() -> None:
    u = np.array([0.0, 0.3333, 0.3334, 0.9999999999999999])
    assert pick(u, 3).tolist() == [0, 0, 1, 2]
