"""Random numbers by position: a draw depends on seed, epoch, stream, example, view and its own number, on nothing else.

States form a tree. `states` gives each example its own, `branch` gives a state numbered children; a child depends on
its parent and number alone, so more views or another batch change nothing about the views there were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rte.rng import fold
from rte.views.batch import ViewPlan

States = NDArray[np.uint64]
Floats = NDArray[np.float64]

STEP = np.uint64(0x9E3779B97F4A7C15)  # splitmix64: an odd constant to step by, then a finaliser that mixes all bits
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class ViewParams:
    """Everything that was drawn for the views of B examples: enough to make them again, or to say what was done.

    place (B, weak, 2): where the crop lies, in 0..1 of the room it has down and to the right.
    box (B, weak, 10, 2): share of the area and width to height of up to ten attempts at a resized crop.
    flip (B, weak): whether the view is mirrored.
    op (B, strong, width, depth): `Kind` numbers; arg (.., 3): their argument, and a spot in 0..1 down and to the right.
    mixing (B, strong, 1 + width): the share of the weak view, then of each chain.
    """

    plan: ViewPlan
    place: Floats
    box: Floats
    flip: NDArray[np.bool_]
    op: NDArray[np.int8]
    arg: Floats
    mixing: NDArray[np.float32]


def scramble(z: States) -> States:
    """The finaliser of splitmix64: every bit of the result depends on every bit of z."""
    z = z ^ (z >> np.uint64(30))
    z *= FIRST
    z ^= z >> np.uint64(27)
    z *= SECOND
    z ^= z >> np.uint64(31)
    return z


def states(
    index: NDArray[np.int64], *, seed: int, epoch: int, stream: int, again: NDArray[np.int64] | None = None
) -> States:
    """One state per example, (B,); another one for an example that has come `again` (B,) times before."""
    key = np.uint64(fold(seed, "views", epoch, stream))
    state = scramble(scramble(index.astype(np.uint64) * STEP + key))
    if again is None or not again.any():
        return state
    return np.where(again > 0, scramble(state + again.astype(np.uint64) * SECOND), state)


def branch(state: States, n: int) -> States:
    """The first n children of each state, (..., n)."""
    return scramble(state[..., None] + np.arange(1, n + 1, dtype=np.uint64) * STEP)


def uniform(state: States, n: int) -> Floats:
    """n draws from [0, 1) for each state, (n, ...): draws come first, so that each is contiguous over all states."""
    step = np.arange(1, n + 1, dtype=np.uint64) * STEP
    drawn = scramble(state + step.reshape(-1, *(1,) * state.ndim))
    return np.asarray((drawn >> np.uint64(11)) * 2.0**-53, np.float64)


def pick(u: Floats, n: int) -> NDArray[np.int64]:
    """Uniform draws as whole numbers from 0 to n - 1."""
    return (u * n).astype(np.int64)
