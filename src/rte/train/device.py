"""Where to compute."""

from __future__ import annotations

import ctypes
import os
import sys

import torch

from rte.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """The device asked for; "auto" takes CUDA (one GPU per process of torchrun), then MPS, then the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device = '{name}' is no device; use auto, cpu, cuda or mps.") from None
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not present.get(device.type, False):
        raise ConfigError(f"train.device = '{name}' is not available on this machine; use auto or cpu.")
    return device


def keep_memory() -> None:
    """Let glibc keep the large blocks that a step frees: the next step asks for the same ones again.

    By default it hands them back to the kernel, which then has to clear every page of them anew; on two cores that cost
    a sixth of the time of a step. Elsewhere than on Linux with glibc this does nothing.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    trim_threshold, mmap_threshold = -1, -3  # names of mallopt's parameters in malloc.h
    mallopt(trim_threshold, 2**31 - 1)
    mallopt(mmap_threshold, 2**30)
