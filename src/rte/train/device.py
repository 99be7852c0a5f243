"""Where to compute."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from functools import cache

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


HALF = "import torch; layer = torch.nn.Linear(64, 64).bfloat16(); layer(torch.ones(64, 64).bfloat16()).sum().backward()"
"""A program that computes in bfloat16."""


def check_precision(device: torch.device, precision: str) -> None:
    """Refuse bf16 on a processor that would kill the run: some virtual machines offer AMX, then call it illegal."""
    if precision == "bf16" and device.type == "cpu" and not _survives(HALF):
        raise ConfigError(
            "train.precision = bf16 ends in an illegal instruction on this processor; use fp32, or start with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment."
        )


@cache
def _survives(program: str) -> bool:
    """Whether no signal kills a Python program of that text, which has a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode >= 0


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
