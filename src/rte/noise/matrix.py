"""The noise model of the paper: F = diag(P) C + diag(1 - P) I, where F[a, b] = P(given b | true a).

P[k] is the share of class k that is corrupted. C says into what: zero diagonal, each row sums to 1. So the ratio that
is asked for is the share of labels that is wrong. The other convention of the field, redrawing over all K classes, is
`symmetric_inclusive`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rte.errors import NoiseError, did_you_mean
from rte.noise import checks, tables
from rte.noise.checks import Matrix
from rte.noise.config import MATRIX_SUFFIXES, NAMES, Sampling
from rte.noise.files import read
from rte.noise.sampling import Labels, chosen_bernoulli, chosen_exact, chosen_stratified, corrupted
from rte.rng import generator

TIE = 1e-9


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """How labels go wrong: P (K,) shares and C (K, K) structure, both float64 and read-only."""

    P: Matrix
    C: Matrix
    name: str = "custom"

    def __post_init__(self) -> None:
        C = checks.structure(self.C, f"C of noise '{self.name}'")
        P = checks.intensity(self.P, C, f"P of noise '{self.name}'")
        for field, array in (("P", P), ("C", C)):
            array.setflags(write=False)
            object.__setattr__(self, field, array)

    @property
    def classes(self) -> int:
        """K."""
        return len(self.P)

    @property
    def F(self) -> Matrix:
        """The transition matrix diag(P) C + diag(1 - P) I, (K, K): F[a, b] = P(given b | true a)."""
        return self.P[:, None] * self.C + np.diag(1.0 - self.P)

    @property
    def warning(self) -> str | None:
        """A sentence about the first class whose right label is not its most frequent one, or None."""
        F = self.F
        right, rival = np.diag(F), self.P * self.C.max(axis=1)
        lost = np.flatnonzero(right <= rival + TIE)
        if not len(lost):
            return None
        a = int(lost[0])
        b = int(self.C[a].argmax())
        return (
            f"noise '{self.name}' gives class {a} the right label with probability {right[a]:.3g} and label {b} with "
            f"{rival[a]:.3g}, so the right one cannot be learnt from the labels; lower the ratio."
        )

    @property
    def learnable(self) -> bool:
        """Whether every class is labelled right more often than any one wrong way: F[a, a] > F[a, b]."""
        return self.warning is None

    def expected_wrong(self, y: ArrayLike) -> float:
        """The share of wrong labels to expect for true labels y (N,): mean of P[y]."""
        return float(self.P[checks.labels(y, self.classes, f"noise '{self.name}'")].mean())

    def sample(self, y: ArrayLike, *, seed: int, sampling: Sampling = "exact") -> Labels:
        """Given labels (N,) int64 for true labels y (N,), the same for the same seed.

        exact: round(sum of P[y]) examples of the whole set, for one ratio p thus exactly round(p N) (the paper's);
        bernoulli: each example on its own; stratified: exactly round(P[k] n_k) of each class k.
        Each example that is chosen then draws its label from its row of C.
        """
        y = checks.labels(y, self.classes, f"noise '{self.name}'")
        rng = generator(seed, "noise", "chosen")
        match sampling:
            case "exact":
                mask = chosen_exact(self.P[y], rng)
            case "bernoulli":
                mask = chosen_bernoulli(self.P[y], rng)
            case "stratified":
                mask = chosen_stratified(y, self.P, rng)
            case _:
                raise NoiseError(f"unknown sampling '{sampling}'; {did_you_mean(str(sampling), get_args(Sampling))}")
        return corrupted(y, mask, self.C, generator(seed, "noise", "given"))

    @classmethod
    def uniform(cls, C: ArrayLike, ratio: float, name: str = "custom") -> Self:
        """One ratio for all classes; a class whose row of C is all zero is never corrupted."""
        rows = checks.structure(C, f"C of noise '{name}'")
        return cls(np.where(rows.any(axis=1), checks.share(ratio, f"noise '{name}'"), 0.0), rows, name)

    @classmethod
    def named(cls, name: str, classes: int, ratio: float) -> Self:
        """The model of a name in the settings; for models that come from no file."""
        match name:
            case "none":
                return cls.none(classes)
            case "symmetric":
                return cls.symmetric(classes, ratio)
            case "symmetric-inclusive":
                return cls.symmetric_inclusive(classes, ratio)
            case "pair":
                return cls.pair(classes, ratio)
            case "patrini-cifar10":
                return cls.patrini_cifar10(ratio)
            case "patrini-cifar100":
                return cls.patrini_cifar100(ratio)
            case "confusion-cifar10":
                return cls.confusion_cifar10(ratio)
        raise NoiseError(f"noise '{name}' cannot be made from a name and a ratio; {did_you_mean(name, NAMES)}")

    @classmethod
    def none(cls, classes: int) -> Self:
        """No noise."""
        return cls.uniform(np.zeros((_count(classes),) * 2), 0.0, "none")

    @classmethod
    def symmetric(cls, classes: int, ratio: float) -> Self:
        """Any wrong class alike, C = (1 - I)/(K - 1): the share of wrong labels is `ratio` (the paper's)."""
        return cls.uniform(_others(classes), ratio, "symmetric")

    @classmethod
    def symmetric_inclusive(cls, classes: int, ratio: float) -> Self:
        """A share `ratio` redrawn over all K classes, the true one included: only ratio (1 - 1/K) are wrong."""
        wrong = checks.share(ratio, "noise 'symmetric-inclusive'") * (1.0 - 1.0 / _count(classes))
        return cls.uniform(_others(classes), wrong, "symmetric-inclusive")

    @classmethod
    def pair(cls, classes: int, ratio: float) -> Self:
        """Class k becomes k + 1, the last one 0."""
        return cls.uniform(np.roll(np.eye(_count(classes)), 1, axis=1), ratio, "pair")

    @classmethod
    def patrini_cifar10(cls, ratio: float) -> Self:
        """Half of CIFAR-10's classes become a similar one, so ratio/2 of all labels are wrong.

        truck -> automobile, bird -> airplane, deer -> horse, cat <-> dog; the other five are never corrupted.
        """
        C = np.zeros((10, 10))
        C[tuple(zip(*tables.PATRINI_CIFAR10, strict=True))] = 1.0
        return cls.uniform(C, ratio, "patrini-cifar10")

    @classmethod
    def patrini_cifar100(cls, ratio: float) -> Self:
        """Each class of CIFAR-100 becomes the next one of its superclass, in ascending order and round the circle."""
        C = np.zeros((100, 100))
        superclass = np.array(tables.CIFAR100_SUPERCLASS)
        for s in range(20):
            members = np.flatnonzero(superclass == s)
            C[members, np.roll(members, -1)] = 1.0
        return cls.uniform(C, ratio, "patrini-cifar100")

    @classmethod
    def confusion_cifar10(cls, ratio: float) -> Self:
        """The paper's asymmetric noise: CIFAR-10 as a shallow network confuses it (eq. c_asym_rte)."""
        return cls.uniform(tables.CONFUSION_CIFAR10, ratio, "confusion-cifar10")

    @classmethod
    def from_matrix(cls, F: ArrayLike, name: str = "matrix") -> Self:
        """The model of a full transition matrix F (K, K), F[a, b] = P(given b | true a)."""
        what = f"F of noise '{name}'"
        off = checks.normalised(checks.probabilities(F, what), what, empty_rows=False)
        np.fill_diagonal(off, 0.0)
        P = off.sum(axis=1)
        return cls(np.minimum(P, 1.0), off / np.where(P > 0, P, 1.0)[:, None], name)

    @classmethod
    def from_confusion(cls, counts: ArrayLike, ratio: float, name: str = "confusion") -> Self:
        """Noise shaped like the mistakes of a classifier, counts[a, b] = how often class a was taken for b.

        The diagonal is dropped and the rows are normalised; a class that was never confused is never corrupted.
        """
        ratio = checks.share(ratio, f"noise '{name}'")
        off = checks.square(counts, f"confusion matrix of noise '{name}'")
        np.fill_diagonal(off, 0.0)
        sums = off.sum(axis=1, keepdims=True)
        if not sums.any() and ratio > 0:
            raise NoiseError(
                f"the confusion matrix of noise '{name}' holds no mistakes, so it names no class to turn a label into; "
                "take the predictions of a weaker classifier."
            )
        return cls.uniform(off / np.where(sums > 0, sums, 1.0), ratio, name)

    @classmethod
    def from_file(cls, path: str | PathLike[str], ratio: float | None = None, name: str = "matrix") -> Self:
        """The model in a .csv, .txt, .npy, .npz or .json file: a full F, or a C with zero diagonal and a ratio.

        A .npz or .json file may name its arrays F, or C and P (a noise manifest does); P then stands for the ratio.
        """
        entries = read(path, MATRIX_SUFFIXES)
        if "P" in entries and "C" in entries:
            if ratio is not None:
                raise NoiseError(f"{path} holds the share P of each class already; leave the ratio out.")
            if (
                entries["C"] is None and {"K", "ratio_asked"} <= entries.keys()
            ):  # the manifest of a model that has a name
                return cls.named(str(entries.get("name")), entries["K"], entries["ratio_asked"])
            return cls(entries["P"], entries["C"], name)
        matrix = checks.probabilities(_pick_matrix(entries, path), str(path))
        if ratio is not None:
            return cls.uniform(checks.structure(matrix, str(path)), ratio, name)
        if not np.diag(matrix).any():
            raise NoiseError(
                f"the diagonal of {path} is all zero, so it is a structure C that does not say how many labels go "
                "wrong; give a ratio with it."
            )
        return cls.from_matrix(matrix, name)


def transition_counts(y_true: ArrayLike, y: ArrayLike, classes: int) -> NDArray[np.int64]:
    """How many examples of true class a have the given (or predicted) label b, (K, K)."""
    a, b = (checks.labels(part, classes, "the count matrix") for part in (y_true, y))
    if len(a) != len(b):
        raise NoiseError(f"{len(a)} true labels but {len(b)} given ones; give one of each per example.")
    return np.bincount(a * classes + b, minlength=classes * classes).reshape(classes, classes)


def _count(classes: Any) -> int:
    if isinstance(classes, bool) or not isinstance(classes, int | np.integer) or classes < 2:
        raise NoiseError(f"the number of classes is {classes}; label noise needs a whole number of at least 2.")
    return int(classes)


def _others(classes: int) -> Matrix:
    k = _count(classes)
    return (1.0 - np.eye(k)) / (k - 1)


def _pick_matrix(entries: dict[str, Any], path: str | PathLike[str]) -> Any:
    """F or C by name, else the only entry there is."""
    named = [key for key in ("F", "C") if key in entries]
    if len(named) != 1 and len(entries) != 1:
        held: Sequence[str] = sorted(entries)
        raise NoiseError(f"{path} holds {', '.join(held) or 'nothing'}; name the matrix F, or C with P or a ratio.")
    return entries[named[0]] if named else next(iter(entries.values()))
