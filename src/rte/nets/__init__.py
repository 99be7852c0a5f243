"""Networks. A new one is one file here with `NAMES`, `SUMMARY` and a `build` that returns None for other names."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Literal

from rte.errors import ConfigError, did_you_mean
from rte.nets.base import Net
from rte.nets.cost import multiply_adds, parameters

__all__ = ["Net", "available", "build", "multiply_adds", "parameters"]

Kind = Literal["images", "vectors"]
NOT_NETWORKS = {"base", "config", "cost", "pretrained", "weights"}


def build(name: str, *, channels: int, classes: int, size: tuple[int, ...], dropout: float = 0.0) -> Net:
    """The network of that name for (channels, *size) images and that many classes, freshly initialised.

    Without a size, for vectors of `channels` numbers.

    The stem fits the image size (3x3 below 100 pixels, else 7x7 stride 2 and max pool) unless the name ends in
    "-cifar" or "-imagenet". `dropout` acts inside the residual blocks, before their last convolution.
    """
    if channels < 1 or classes < 2 or min(size, default=1) < 1:
        shape = "x".join(map(str, size))
        what = f"{shape} images with {channels} channels" if size else f"vectors of {channels} numbers"
        raise ConfigError(
            f"a network for {classes} classes of {what} cannot be built; "
            "give at least 2 classes, 1 channel or number, and 1 pixel."
        )
    if not 0.0 <= dropout < 1.0:
        raise ConfigError(f"dropout is {dropout}; give a number from 0 up to, but not including, 1.")
    for module in _files():
        if takes_vectors(module) != (not size):
            continue
        net: Net | None = module.build(name, channels=channels, classes=classes, size=size, dropout=dropout)
        if net is not None:
            return net
    kind: Kind = "images" if size else "vectors"
    if name in available():
        raise ConfigError(f"the network '{name}' is not for {kind}; choose one of: {', '.join(available(kind))}.")
    raise ConfigError(f"there is no network '{name}'; {did_you_mean(name, available(kind))}")


def available(kind: Kind | None = None) -> dict[str, str]:
    """The names one can build, each with a line about it, of one kind or all; <angle brackets> stand for a number."""
    files = [module for module in _files() if kind in (None, "vectors" if takes_vectors(module) else "images")]
    return {name: module.SUMMARY for module in files for name in module.NAMES}


def takes_vectors(module: ModuleType) -> bool:
    """Whether a file's networks are for vectors; else they are for images."""
    return bool(getattr(module, "VECTORS", False))


def _files() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in NOT_NETWORKS)
    return [import_module(f"{__name__}.{name}") for name in names]
