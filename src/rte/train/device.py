"""Where to compute."""

from __future__ import annotations

import torch

from rte.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """The device asked for; "auto" takes CUDA, then MPS, then the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device = '{name}' is no device; use auto, cpu, cuda or mps.") from None
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not present.get(device.type, False):
        raise ConfigError(f"train.device = '{name}' is not available on this machine; use auto or cpu.")
    return device
