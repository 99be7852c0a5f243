"""Putting noise into a dataset, and the record from which the same labels can be made again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from rte.data.types import Dataset, Labels
from rte.errors import DataError, NoiseError
from rte.noise.config import NoiseConfig, NoiseName, Sampling
from rte.noise.labels import import_labels, read_labels
from rte.noise.matrix import NoiseModel, transition_counts
from rte.settings import Settings

VERSION = 1


class Manifest(Settings):
    """What was done to the labels, complete enough to do it again.

    `counts[a][b]` examples of true class a have the given label b. Ratios, counts and the digest of the true labels are
    None where the truth is unknown, the model P, C where there is none. C is also None where the name and the ratio
    tell it, since it would be most of the file with many classes.
    """

    version: Literal[1] = 1
    name: NoiseName
    sampling: Sampling
    seed: int
    ratio_asked: float | None
    ratio_expected: float | None
    ratio_measured: float | None
    K: int
    N: int
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...] | None
    P: tuple[float, ...] | None
    C: tuple[tuple[float, ...], ...] | None
    file: str | None
    key: str | None
    true_sha256: str | None
    given_sha256: str
    warning: str | None

    def model(self) -> NoiseModel:
        """The noise model: from C where it is kept, as it always was once, else from the name and the ratio."""
        if self.C is None:
            return NoiseModel.named(self.name, self.K, self.ratio_asked or 0.0)
        return NoiseModel(np.array(self.P), np.array(self.C), self.name)

    def tree(self) -> dict[str, Any]:
        """Plain values, as they stand in JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def from_tree(cls, tree: Any) -> Self:
        """The manifest of plain values."""
        return cls.from_json(json.dumps(tree))

    def to_json(self) -> str:
        """The manifest as JSON; numbers come back to the last bit."""
        return json.dumps(self.tree(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The manifest in a JSON text."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the text"
            raise NoiseError(
                f"this is no noise manifest of version {VERSION}: {where}: {first['msg']}; use the noise.json of a run."
            ) from None


def digest(y: ArrayLike) -> str:
    """SHA-256 of labels (N,) as little-endian int64."""
    return hashlib.sha256(np.ascontiguousarray(y, dtype="<i8").tobytes()).hexdigest()


def build_model(cfg: NoiseConfig, classes: int) -> NoiseModel:
    """The noise model that the settings name, for K classes."""
    if cfg.name == "labels":
        raise NoiseError("noise 'labels' comes from a file of labels and has no model; use import_labels.")
    if cfg.name == "matrix":
        model = NoiseModel.from_file(str(cfg.file), cfg.ratio or None)
    else:
        model = NoiseModel.named(cfg.name, classes, cfg.ratio)
    if model.classes != classes:
        source = f"{cfg.name} ({cfg.file})" if cfg.file else cfg.name
        raise NoiseError(
            f"noise {source} has {model.classes} classes but the data has {classes}; choose noise that fits."
        )
    return model


def corrupt(
    dataset: Dataset, cfg: NoiseConfig, seed: int, *, spared: NDArray[np.int64] | None = None
) -> tuple[Dataset, Manifest]:
    """The dataset with the noise that was asked for, and the record of it. Rows that are `spared` keep right labels.

    A noise model is applied to `y_true`, or to the labels the dataset came with if it has none; these then count as the
    truth. Without noise, and with labels from a file, nothing is claimed about a truth that is unknown.
    """
    seed = seed if cfg.seed is None else cfg.seed
    if cfg.name == "labels":
        noisy = _spare(_with_labels_of_file(dataset, cfg), spared)
        return noisy, _manifest(cfg, seed, None, noisy)
    model = build_model(cfg, len(dataset.classes))
    if cfg.name == "none":
        clean = _spare(dataset, spared)
        return clean, _manifest(cfg, seed, model, clean)
    truth = dataset.train.y if dataset.y_true is None else dataset.y_true
    noisy = replace(dataset.relabelled(model.sample(truth, seed=seed, sampling=cfg.sampling)), y_true=truth)
    noisy = _spare(noisy, spared)
    return noisy, _manifest(cfg, seed, model, noisy)


def _spare(dataset: Dataset, rows: NDArray[np.int64] | None) -> Dataset:
    if rows is None or not len(rows) or dataset.y_true is None:
        return dataset
    y = dataset.train.y.copy()
    y[rows] = dataset.y_true[rows]
    return dataset.relabelled(y)


def rebuild(manifest: Manifest, y_true: ArrayLike) -> Labels:
    """The given labels (N,) again, from the manifest and the true labels, each checked by its digest.

    For noise 'none', y_true are the labels the dataset came with; labels from a file are read from that file again.
    """
    truth = np.asarray(y_true)
    if manifest.name == "none":
        y = truth.astype(np.int64)
    elif manifest.name == "labels":
        y = import_labels(str(manifest.file), manifest.key, classes=manifest.classes, examples=manifest.N)
    elif digest(truth) != manifest.true_sha256:
        raise NoiseError(
            f"these {len(truth)} labels are not the {manifest.N} true labels the manifest was made from "
            f"(SHA-256 {digest(truth)[:12]}… instead of {str(manifest.true_sha256)[:12]}…); "
            "give those of the same dataset in the same order."
        )
    else:
        y = manifest.model().sample(truth, seed=manifest.seed, sampling=manifest.sampling)
    if digest(y) != manifest.given_sha256:
        raise NoiseError(
            f"the rebuilt labels are not those of the manifest (SHA-256 {digest(y)[:12]}… instead of "
            f"{manifest.given_sha256[:12]}…); its fields or {manifest.file or 'the labels given'} were changed."
        )
    return y


def _with_labels_of_file(dataset: Dataset, cfg: NoiseConfig) -> Dataset:
    """The dataset with given labels from a file; true labels in the file show whether its order is the dataset's."""
    found = read_labels(str(cfg.file), cfg.key, classes=dataset.classes, examples=len(dataset.train))
    truth = found.clean if dataset.y_true is None else dataset.y_true
    if truth is not None and found.clean is not None and not np.array_equal(found.clean, truth):
        first = np.flatnonzero(found.clean != truth)[0]
        raise DataError(
            f"{cfg.file}: its clean labels differ from those of {dataset.name}, first at example {first}; "
            "the file belongs to other data or to another order of it."
        )
    return replace(dataset.relabelled(found.y), y_true=truth)


def _manifest(cfg: NoiseConfig, seed: int, model: NoiseModel | None, dataset: Dataset) -> Manifest:
    y, truth, k = dataset.train.y, dataset.y_true, len(dataset.classes)
    counts = None if truth is None else transition_counts(truth, y, k)
    full_matrix = cfg.name == "matrix" and not cfg.ratio
    return Manifest(
        name=cfg.name,
        sampling=cfg.sampling,
        seed=seed,
        ratio_asked=None if model is None or full_matrix else cfg.ratio,
        ratio_expected=None if model is None or truth is None else model.expected_wrong(truth),
        ratio_measured=None if counts is None else (len(y) - int(np.trace(counts))) / len(y),
        K=k,
        N=len(y),
        classes=tuple(dataset.classes),
        counts=None if counts is None else tuple(map(tuple, counts.tolist())),
        P=None if model is None else tuple(model.P.tolist()),
        C=tuple(map(tuple, model.C.tolist())) if model is not None and cfg.name == "matrix" else None,
        file=cfg.file,
        key=cfg.key,
        true_sha256=None if truth is None else digest(truth),
        given_sha256=digest(y),
        warning=None if model is None else model.warning,
    )
