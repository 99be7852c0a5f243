"""Numbers and splits that are taken from a dataset once, before training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Images, Labels, Pixels, Vectors
from rte.errors import DataError
from rte.rng import generator

BLOCK = 32
SMALL = 256
"""Images of one size up to so many pixels a side are read by the block."""
VECTORS = 4096
"""Vectors that are read at a time."""
NEIGHBOURS = 2000
"""Vectors among which neighbours are looked for."""
Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def channel_statistics(images: Images, limit: int = 10000) -> Statistics:
    """Mean and standard deviation per channel, in 0..1, over at most `limit` evenly spaced images.

    Every image counts the same whatever its size. The deviation is at least 1/255, so that a constant channel can be
    divided by it.
    """
    rows = np.linspace(0, len(images) - 1, min(len(images), limit)).round().astype(np.int64)
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
        share = sum(pool.map(lambda block: _shares(images, block), blocks), np.zeros(())) / len(rows)
    value = np.arange(256) / 255
    mean = share @ value
    variance = (share * (value - mean[:, None]) ** 2).sum(axis=1)
    deviation = np.maximum(np.sqrt(variance), 1 / 255)
    return tuple(mean.tolist()), tuple(deviation.tolist())


def _shares(images: Images, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """`_histogram` of some images, which are read one by one where they may be photographs."""
    if images.size is not None and max(images.size) <= SMALL:
        return _histogram(images.fetch(rows))
    return sum((_histogram(images.fetch(row[None])) for row in rows), np.zeros(()))


def vector_statistics(vectors: Vectors, limit: int = 100_000) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Mean and standard deviation of each number, and the median distance of an example to its nearest neighbour.

    The first two over at most `limit` evenly spaced vectors; a number that never varies has deviation 1. The distance
    is that of some standardised examples among as many as fit into a moment, so it is an upper bound for large sets.
    """
    rows = np.linspace(0, len(vectors) - 1, min(len(vectors), limit)).round().astype(np.int64)
    total, squares = np.zeros(vectors.dim), np.zeros(vectors.dim)
    first = vectors.fetch(rows[:1]).astype(np.float64)[0]  # sums of differences to it, which stay exact
    for start in range(0, len(rows), VECTORS):
        block = vectors.fetch(rows[start : start + VECTORS]).astype(np.float64) - first
        total += block.sum(0)
        squares += (block**2).sum(0)
    mean = total / len(rows)
    std = np.sqrt(np.maximum(squares / len(rows) - mean**2, 0.0))
    std = np.where(std > 1e-9 * (1.0 + np.abs(first + mean)), std, 1.0)
    some = vectors.fetch(rows[np.linspace(0, len(rows) - 1, min(len(rows), NEIGHBOURS)).astype(np.int64)])
    z = (some - (first + mean)) / std
    return tuple((first + mean).tolist()), tuple(std.tolist()), nearest_distance(z)


def nearest_distance(z: NDArray[np.floating[Any]]) -> float:
    """The median distance of a row of (N, D) to its nearest other row; copies of it do not count."""
    length = np.einsum("nd,nd->n", z, z)
    squared = length[:, None] + length - 2 * z @ z.T
    squared[squared <= 1e-9 * length.max()] = np.inf
    nearest = squared.min(1)
    found = nearest[np.isfinite(nearest)]
    return float(np.sqrt(np.median(found))) if len(found) else 0.0


def _histogram(images: Pixels | Sequence[Pixels]) -> NDArray[np.float64]:
    """The share of each value 0..255 in each channel of an image, (C, 256), summed over images."""
    if not isinstance(images, np.ndarray):
        return sum((_histogram(image[None]) for image in images), np.zeros(()))
    channels = images.reshape(-1, images.shape[3]).T
    counts = np.stack([np.bincount(channel, minlength=256) for channel in channels]).astype(np.float64)
    return counts * (len(images) / channels.shape[1])


def holdout(y: Labels, share: float, seed: int, groups: Labels | None = None) -> tuple[Labels, Labels]:
    """Rows (train, held), both sorted: round(share * N) rows are held, the same share of every given label.

    Labels are the given ones, so the held rows are as noisy as the rest. What does not divide evenly goes to the
    labels with the largest remainders; the last row of a label is never held, even if fewer rows are held for it.
    Rows of one of the `groups` (N,) are held together, and then the shares are met as nearly as groups allow.
    """
    if not 0 <= share < 1:
        raise DataError(f"a share of {share} cannot be held out; give a number from 0 to below 1.")
    labels, counts = np.unique(y, return_counts=True)
    exact = share * counts
    quota = np.floor(exact + 1e-9).astype(np.int64)
    missing = round(share * len(y)) - int(quota.sum())
    ranked = np.argsort(quota - exact, kind="stable")
    quota[[k for k in ranked if quota[k] + 2 <= counts[k]][: max(missing, 0)]] += 1
    if share > 0 and quota.sum() == 0:
        raise DataError(f"holding out {share} of {len(y)} examples holds none; give a larger share or more examples.")
    if groups is not None and share > 0:
        return _groups_held(np.searchsorted(labels, y), quota, groups, seed)
    held = [
        generator(seed, "holdout", int(label)).permutation(np.flatnonzero(y == label))[:count]
        for label, count in zip(labels, quota, strict=True)
    ]
    mask = np.zeros(len(y), dtype=bool)
    mask[np.concatenate([np.zeros(0, dtype=np.int64), *held])] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


def _groups_held(y: Labels, quota: Labels, groups: Labels, seed: int) -> tuple[Labels, Labels]:
    """Rows (train, held) with whole groups held: in random order, large ones first, each that brings the numbers held
    of each label nearer to `quota` (K,) and leaves some of every label to train on."""
    _, group = np.unique(groups, return_inverse=True)
    table = np.zeros((int(group.max()) + 1, len(quota)), np.int64)  # how many of each label a group has
    np.add.at(table, (group, y), 1)
    order = generator(seed, "groups").permutation(len(table))
    order = order[np.argsort(-table[order].sum(1), kind="stable")]
    taken, counts = np.zeros(len(quota), np.int64), table.sum(0)
    chosen = np.zeros(len(table), bool)
    for g in order:
        after = taken + table[g]
        if ((after - quota) ** 2).sum() < ((taken - quota) ** 2).sum() and (after < counts).all():
            taken, chosen[g] = after, True
    if not chosen.any():
        raise DataError(
            f"no group can be held out: there are {len(table)}, and each is too large; use smaller groups, or a "
            "larger share."
        )
    return np.flatnonzero(~chosen[group]), np.flatnonzero(chosen[group])
