"""Networks. A new one is one file here with `NAMES`, `SUMMARY` and a `build` that returns None for other names."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

from rte.errors import ConfigError, did_you_mean
from rte.nets.base import Net
from rte.nets.cost import multiply_adds, parameters

__all__ = ["Net", "available", "build", "multiply_adds", "parameters"]

NOT_NETWORKS = {"base", "config", "cost"}


def build(name: str, *, channels: int, classes: int, size: tuple[int, int], dropout: float = 0.0) -> Net:
    """The network of that name for (channels, *size) images and that many classes, freshly initialised.

    The stem fits the image size (3x3 below 100 pixels, else 7x7 stride 2 and max pool) unless the name ends in
    "-cifar" or "-imagenet". `dropout` acts inside the residual blocks, before their last convolution.
    """
    if channels < 1 or classes < 2 or min(size) < 1:
        raise ConfigError(
            f"a network for {classes} classes of {size[0]}x{size[1]} images with {channels} channels cannot be built; "
            "give at least 2 classes, 1 channel and 1 pixel."
        )
    if not 0.0 <= dropout < 1.0:
        raise ConfigError(f"dropout is {dropout}; give a number from 0 up to, but not including, 1.")
    for module in _files():
        net: Net | None = module.build(name, channels=channels, classes=classes, size=size, dropout=dropout)
        if net is not None:
            return net
    raise ConfigError(f"there is no network '{name}'; {did_you_mean(name, available())}")


def available() -> dict[str, str]:
    """The names one can build, each with a line about it; <angle brackets> stand for a number."""
    return {name: module.SUMMARY for module in _files() for name in module.NAMES}


def _files() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in NOT_NETWORKS)
    return [import_module(f"{__name__}.{name}") for name in names]
