"""What noise a run asks for. Imported by `rte --help`, so it must not need NumPy."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from pydantic import model_validator

from rte.errors import ConfigError, did_you_mean
from rte.settings import Settings, setting

NoiseName = Literal[
    "none",
    "symmetric",
    "symmetric-inclusive",
    "pair",
    "patrini-cifar10",
    "patrini-cifar100",
    "confusion-cifar10",
    "matrix",
    "labels",
]
Sampling = Literal["exact", "bernoulli", "stratified"]

NAMES: tuple[str, ...] = get_args(NoiseName)
FROM_FILE = ("matrix", "labels")
MATRIX_SUFFIXES = (".csv", ".txt", ".npy", ".npz", ".json")
LABEL_SUFFIXES = (".npz", ".npy", ".csv", ".json", ".pt")


class NoiseConfig(Settings):
    """Label noise that is put into the training labels, or a file of noisy labels to train on."""

    name: NoiseName = setting("none", "none, a noise model, a matrix from a file, or labels from a file")
    ratio: float = setting(
        0.0,
        "share of corrupted labels, over all classes that can be corrupted; 0 with matrix: the file is a full F",
        ge=0,
        le=1,
    )
    file: str | None = setting(None, "the file of a matrix or of labels")
    key: str | None = setting(None, "which array, entry or column of a label file, such as worse_label")
    sampling: Sampling = setting(
        "exact", "exact (as in the paper), bernoulli (each alone) or stratified (quota per class)"
    )
    seed: int | None = setting(None, "seed of the noise alone; none: the run's seed", ge=0)

    @model_validator(mode="after")
    def _fits_the_name(self) -> NoiseConfig:
        if self.name in FROM_FILE and not self.file:
            raise ValueError(f"noise '{self.name}' needs a file; set noise.file")
        if self.name not in FROM_FILE and self.file:
            raise ValueError(f"noise '{self.name}' takes no file; remove noise.file, or choose matrix or labels")
        if self.name in ("none", "labels") and self.ratio:
            raise ValueError(
                f"noise '{self.name}' takes no ratio; remove noise.ratio, or choose noise such as symmetric"
            )
        if self.name != "labels" and self.key:
            raise ValueError(f"noise '{self.name}' takes no key; remove noise.key, or choose labels")
        return self


def parse_noise(text: str) -> dict[str, Any]:
    """The fields of `NoiseConfig` that a short form stands for.

    none, NAME:RATIO, matrix:FILE, matrix:FILE:RATIO, labels:FILE or labels:FILE:KEY.
    """
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise ConfigError(f"there is no noise '{name}'; {did_you_mean(name, NAMES)}")
    if name in FROM_FILE:
        file, tail = _file(name, rest)
        if name == "labels":
            return {"name": name, "file": file, "key": tail}
        return {"name": name, "file": file, "ratio": 0.0 if tail is None else _ratio(text, tail)}
    if name == "none":
        if rest:
            raise ConfigError(f"noise '{text}': none takes nothing after it; write none, or symmetric:{rest}.")
        return {"name": name, "ratio": 0.0}
    if not rest:
        raise ConfigError(f"noise '{text}' has no ratio; write it as {name}:0.4.")
    return {"name": name, "ratio": _ratio(text, rest)}


def _file(name: str, rest: str) -> tuple[str, str | None]:
    """FILE and what follows it; a file is known by its ending, since paths may hold colons themselves."""
    suffixes = MATRIX_SUFFIXES if name == "matrix" else LABEL_SUFFIXES
    ending = "|".join(re.escape(suffix) for suffix in suffixes)
    match = re.fullmatch(rf"(.+?(?:{ending}))(?::(.+))?", rest, re.IGNORECASE)
    if match is None:
        raise ConfigError(
            f"noise '{name}:{rest}' names no file; write {name}:FILE with a file that ends in {', '.join(suffixes)}."
        )
    return match.group(1), match.group(2)


def _ratio(text: str, number: str) -> float:
    try:
        ratio = float(number)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise ConfigError(f"noise '{text}': the ratio '{number}' is no number between 0 and 1; write 0.4 for 40 %.")
    return ratio
