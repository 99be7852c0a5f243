"""Robust Temporal Ensembling: train an image classifier straight from noisy labels.

The public names are loaded when first used, so that `import rte` and `rte --help` stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rte.estimator import RobustClassifier
    from rte.noise.matrix import NoiseModel
    from rte.parts.ema import EMA
    from rte.parts.losses import ensemble_consistency, gce, jensen_shannon
    from rte.views.augmix import AugMix

__version__ = "0.1.0"

__all__ = ["EMA", "AugMix", "NoiseModel", "RobustClassifier", "ensemble_consistency", "gce", "jensen_shannon"]

_HOME = {
    "AugMix": "rte.views.augmix",
    "EMA": "rte.parts.ema",
    "NoiseModel": "rte.noise.matrix",
    "RobustClassifier": "rte.estimator",
    "ensemble_consistency": "rte.parts.losses",
    "gce": "rte.parts.losses",
    "jensen_shannon": "rte.parts.losses",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rte' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
