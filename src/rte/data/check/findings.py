"""What a scan comes to: counts, copies, contradicting labels, and what else a person would want to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rte.data.check import fingerprint
from rte.data.check.near import pairs_within
from rte.data.check.scan import Scan, scan
from rte.data.ids import ids
from rte.data.types import Dataset, Images, Labels, Vectors

BITS = 6
"""Perceptual hashes of near copies differ in at most so many of their 64 bits."""
ALIKE = 0.9
"""And their thumbnails correlate at least so much."""
SMALLEST = 24
"""Pixels of a side: of smaller images, whole classes look nearly the same."""
Groups = list[list[int]]


class HardlyTwo(UserWarning):
    """Names of classes that may mean one."""


@dataclass(frozen=True)
class Findings:
    """What is worth knowing of a dataset. Examples are counted through: those trained on, then those tested on.

    `exact` and `near` are groups of examples that are copies of each other; `y` (N,) are all labels.
    """

    dataset: Dataset
    scan: Scan
    y: Labels
    exact: Groups
    near: Groups
    name: Callable[[int], str]

    @property
    def n(self) -> int:
        """How many examples are trained on."""
        return len(self.dataset.train)

    def contradicting(self, groups: Groups) -> Groups:
        """The groups whose examples have different labels."""
        return [group for group in groups if len(set(self.y[group].tolist())) > 1]

    def leaking(self, groups: Groups) -> Groups:
        """The groups with examples to train on and to test on."""
        return [group for group in groups if group[0] < self.n <= group[-1]]

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Examples of each class to train and to test on, (K,) each."""
        k = len(self.dataset.classes)
        return np.bincount(self.y[: self.n], minlength=k), np.bincount(self.y[self.n :], minlength=k)

    def tree(self) -> dict[str, Any]:
        """All of it as plain values, examples by their ids."""
        classes, (train, test) = self.dataset.classes, self.counts()
        seen = train[train > 0]
        copies = {
            kind: {
                "groups": [self._named(group) for group in groups],
                "contradicting": [self._named(group) for group in self.contradicting(groups)],
                "train_and_test": [self._named(group) for group in self.leaking(groups)],
            }
            for kind, groups in (("exact", self.exact), ("near", self.near))
        }
        return {
            "name": self.dataset.name,
            "kind": kind_of(self.dataset),
            "train": self.n,
            "test": len(self.y) - self.n,
            "classes": {
                name: {"train": int(a), "test": int(b)} for name, a, b in zip(classes, train, test, strict=True)
            },
            "imbalance": float(seen.max() / seen.min()),
            "seen_once": [classes[k] for k in np.flatnonzero(train == 1)],
            "alike": alike(classes),
            "sizes": self.sizes(),
            "grey": self.scan.grey,
            "missing": self.scan.missing,
            "constant": self.scan.constant,
            "unreadable": {self.name(i): why for i, why in self.scan.unreadable.items()},
            "copies": copies,
        }

    def sizes(self) -> dict[str, list[int]] | None:
        """(height, width) of the smallest image, of one in the middle and of the largest, by their area."""
        if self.scan.sizes is None or not (self.scan.sizes[:, 0] > 0).any():
            return None
        known = self.scan.sizes[self.scan.sizes[:, 0] > 0]
        order = np.argsort(known.astype(np.int64).prod(1), kind="stable")
        places = {"smallest": order[0], "median": order[len(order) // 2], "largest": order[-1]}
        return {name: known[i].tolist() for name, i in places.items()}

    def _named(self, group: list[int]) -> list[dict[str, str]]:
        return [
            {"id": self.name(i), "label": self.dataset.classes[self.y[i]], "split": "train" if i < self.n else "test"}
            for i in group
        ]


def check(dataset: Dataset, root: Path | None = None, progress: Callable[[int], None] = lambda n: None) -> Findings:
    """Read every example of a dataset once; ids are paths below the folder `root`."""
    parts = [dataset.train] + ([dataset.test] if dataset.test is not None else [])
    found = merged([scan(part.images, progress) for part in parts])
    n, names = len(dataset.train), [ids(part.images, root) for part in parts]
    y = np.concatenate([part.y for part in parts])
    exact, alone = same(found.content)
    return Findings(dataset, found, y, exact, near(found, alone), lambda i: names[i >= n](i - n * (i >= n)))


def merged(scans: Sequence[Scan]) -> Scan:
    """Several scans as one, in order."""
    first, *others = scans
    for other in others:
        start = len(first.content)
        first.content += other.content
        first.unreadable |= {start + i: why for i, why in other.unreadable.items()}
        first.grey, first.missing = first.grey + other.grey, first.missing + other.missing
        first.constant = min(first.constant, other.constant)
        if first.hashes is not None and first.thumbs is not None and first.sizes is not None:
            first.hashes = np.concatenate([first.hashes, other.hashes])
            first.thumbs = np.concatenate([first.thumbs, other.thumbs])
            first.sizes = np.concatenate([first.sizes, other.sizes])
    return first


def same(content: Sequence[bytes]) -> tuple[Groups, NDArray[np.int64]]:
    """Groups of equal examples, and one example of each content that could be read."""
    where: dict[bytes, list[int]] = {}
    for i, one in enumerate(content):
        if one:
            where.setdefault(one, []).append(i)
    return [group for group in where.values() if len(group) > 1], np.array([g[0] for g in where.values()], np.int64)


def near(found: Scan, rows: NDArray[np.int64]) -> Groups:
    """Groups of images that look the same, among some `rows` no two of which are equal."""
    if found.hashes is None or found.thumbs is None or found.sizes is None or len(rows) < 2:
        return []
    seen = found.sizes[rows].min(1) >= SMALLEST  # of what cannot be read, the size is 0
    rows = rows[seen & ~fingerprint.is_flat(found.thumbs[rows])]
    pairs = pairs_within(found.hashes[rows], BITS)
    linked = pairs[fingerprint.likeness(found.thumbs[rows[pairs[:, 0]]], found.thumbs[rows[pairs[:, 1]]]) >= ALIKE]
    graph = coo_array((np.ones(len(linked), bool), (linked[:, 0], linked[:, 1])), shape=(len(rows), len(rows)))
    _, part = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = {}
    for i in np.unique(linked):
        groups.setdefault(int(part[i]), []).append(int(rows[i]))
    return sorted(sorted(group) for group in groups.values())


def alike(classes: Sequence[str]) -> list[list[str]]:
    """Names of classes that differ only by case, blanks, or - and _ for blanks."""
    plain: dict[str, list[str]] = {}
    for name in classes:
        plain.setdefault(" ".join(name.casefold().replace("_", " ").replace("-", " ").split()), []).append(name)
    return [names for names in plain.values() if len(names) > 1]


def kind_of(dataset: Dataset) -> str:
    """What the examples are called."""
    source = dataset.train.images
    return "images" if isinstance(source, Images) else "vectors" if isinstance(source, Vectors) else "rows"
