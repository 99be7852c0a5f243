"""What a dataset is: images addressed by index, given labels, class names.

`y` always means the *given* label. `y_true`, where it is known at all, is for injecting noise and for measuring;
a training batch has no such field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rte.errors import DataError

Pixels = NDArray[np.uint8]
Singles = NDArray[np.float32]
Labels = NDArray[np.int64]


class Source(Protocol):
    """Examples of some kind, addressed by index."""

    def __len__(self) -> int: ...

    def fetch(self, index: NDArray[np.int64]) -> Any:
        """The examples at `index` (B,)."""

    def label(self, i: int) -> str:
        """What to call example i in a message or a report: its path, or its number."""

    def take(self, rows: NDArray[np.int64]) -> Source:
        """Some of the examples, in a given order."""


@runtime_checkable
class Images(Source, Protocol):
    """uint8 images, addressed by index."""

    @property
    def channels(self) -> int:
        """1 or 3."""

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) if all images share it, else None."""

    def fetch(self, index: NDArray[np.int64]) -> Pixels | Sequence[Pixels]:
        """The images at `index`: one (B, H, W, C) array if `size` is known, else a list of (h, w, C) arrays."""

    def take(self, rows: NDArray[np.int64]) -> Images: ...


@runtime_checkable
class Vectors(Source, Protocol):
    """Vectors of numbers, addressed by index."""

    @property
    def dim(self) -> int:
        """D, how many numbers each has."""

    def fetch(self, index: NDArray[np.int64]) -> Singles:
        """The vectors at `index`, (B, D)."""

    def take(self, rows: NDArray[np.int64]) -> Vectors: ...


def as_vectors(source: Source) -> Vectors:
    """The examples as vectors, which not all are."""
    if not isinstance(source, Vectors):
        raise DataError("these examples are images, and vectors are needed; embed them first.")
    return source


def as_images(source: Source) -> Images:
    """The examples as images, which not all are."""
    if not isinstance(source, Images):
        raise DataError("this works on images alone, and the examples are none; leave it out.")
    return source


@dataclass(frozen=True)
class ArrayImages:
    """Images that lie in memory as one array (N, H, W, C) uint8."""

    pixels: Pixels

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 4 or self.pixels.shape[3] not in (1, 3):
            raise DataError(
                f"images have dtype {self.pixels.dtype} and shape {self.pixels.shape}; "
                "give uint8 images of shape (N, H, W, 1) or (N, H, W, 3)."
            )

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def channels(self) -> int:
        return int(self.pixels.shape[3])

    @property
    def size(self) -> tuple[int, int] | None:
        return int(self.pixels.shape[1]), int(self.pixels.shape[2])

    def fetch(self, index: NDArray[np.int64]) -> Pixels:
        return self.pixels[index]

    def label(self, i: int) -> str:
        return f"image {i}"

    def take(self, rows: NDArray[np.int64]) -> Images:
        return Subset(self, rows)


@dataclass(frozen=True)
class Subset:
    """Some rows of other images, in a given order."""

    images: Images
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def channels(self) -> int:
        return self.images.channels

    @property
    def size(self) -> tuple[int, int] | None:
        return self.images.size

    def fetch(self, index: NDArray[np.int64]) -> Pixels | Sequence[Pixels]:
        return self.images.fetch(self.rows[index])

    def label(self, i: int) -> str:
        return self.images.label(int(self.rows[i]))

    def take(self, rows: NDArray[np.int64]) -> Images:
        return Subset(self.images, self.rows[rows])


@dataclass(frozen=True)
class ArrayVectors:
    """Vectors in one array (N, D) of floats, in memory or mapped from a file; `rows` picks some of them."""

    values: NDArray[np.floating[Any]]
    rows: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.dtype.kind != "f" or not self.values.shape[1]:
            raise DataError(
                f"vectors have dtype {self.values.dtype} and shape {self.values.shape}; give floats of shape (N, D)."
            )

    def __len__(self) -> int:
        return len(self.values) if self.rows is None else len(self.rows)

    @property
    def dim(self) -> int:
        return int(self.values.shape[1])

    def fetch(self, index: NDArray[np.int64]) -> Singles:
        found = self.values[index if self.rows is None else self.rows[index]].astype(np.float32)
        if not np.isfinite(found).all():
            bad = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
            raise DataError(f"{self.label(int(index[bad]))} holds NaN or infinite numbers; remove or repair it.")
        return found

    def label(self, i: int) -> str:
        return f"vector {i if self.rows is None else int(self.rows[i])}"

    def take(self, rows: NDArray[np.int64]) -> ArrayVectors:
        return ArrayVectors(self.values, rows if self.rows is None else self.rows[rows])


@dataclass(frozen=True)
class Embedded:
    """The features (N, D) that a network has of images, which keep their names."""

    vectors: ArrayVectors
    images: Images

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        return self.vectors.dim

    def fetch(self, index: NDArray[np.int64]) -> Singles:
        return self.vectors.fetch(index)

    def label(self, i: int) -> str:
        return self.images.label(i)

    def take(self, rows: NDArray[np.int64]) -> Embedded:
        return Embedded(self.vectors.take(rows), self.images.take(rows))


@dataclass(frozen=True)
class Split:
    """Examples with one given label each, y (N,) in 0..K-1."""

    images: Source
    y: Labels

    def __post_init__(self) -> None:
        if len(self.images) != len(self.y):
            raise DataError(f"{len(self.images)} images but {len(self.y)} labels; give one label per image.")

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[np.int64]) -> Split:
        return Split(self.images.take(rows), self.y[rows])


@dataclass(frozen=True)
class Dataset:
    """A training split, perhaps a test split, and the true training labels where they are known.

    groups (N,): training examples of one number stay together wherever some are set apart. notes: what was found by
    looking, in sentences for the user.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split | None = None
    y_true: Labels | None = None
    groups: Labels | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        k = len(self.classes)
        if len(self.train) == 0:
            raise DataError(f"{self.name} has no training images; give at least one per class.")
        if k < 2:
            raise DataError(f"{self.name} has {k} class; a classifier needs images of at least two classes.")
        for part, split in (("training", self.train), ("test", self.test)):
            if split is None or len(split) == 0:
                continue
            low, high = int(split.y.min()), int(split.y.max())
            if low < 0 or high >= k:
                bad = int(np.flatnonzero((split.y < 0) | (split.y >= k))[0])
                raise DataError(
                    f"{self.name}: {split.images.label(bad)} of the {part} split has label {int(split.y[bad])}, "
                    f"but there are {k} classes; labels must be 0 to {k - 1}."
                )
        if self.y_true is not None and len(self.y_true) != len(self.train):
            raise DataError(f"{self.name}: {len(self.y_true)} true labels for {len(self.train)} training images.")
        if self.groups is not None and len(self.groups) != len(self.train):
            raise DataError(f"{self.name}: {len(self.groups)} groups for {len(self.train)} training examples.")

    def only(self, rows: NDArray[np.int64]) -> Dataset:
        """The same dataset with these training examples alone."""
        y_true, groups = (None if part is None else part[rows] for part in (self.y_true, self.groups))
        return replace(self, train=self.train.take(rows), y_true=y_true, groups=groups)

    def relabelled(self, y: Labels) -> Dataset:
        """The same images and truth with other given labels."""
        return replace(self, train=Split(self.train.images, y))
