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


HALF = """
import time, torch

def seconds(kind):
    x = torch.randn(64, 64, 16, 16).to(kind, memory_format=torch.channels_last).requires_grad_()
    layer = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False).to(kind, memory_format=torch.channels_last)
    times = []
    for _ in range(12):
        began = time.perf_counter()
        y = layer(x)
        y.backward(y)
        times.append(time.perf_counter() - began)
    return min(times)

print(seconds(torch.float32) / seconds(torch.bfloat16))
"""
"""A program that computes in bfloat16, and prints how many times as fast a convolution is so."""
FASTER = 1.3
"""How many times as fast it must be for `auto`: what is no convolution gains less."""


def faster_in_half(device: torch.device) -> bool:
    """Whether "auto" means bf16: on processors that are faster in it, as those with AMX are; elsewhere it must be asked
    for."""
    return device.type == "cpu" and _speed_in_half(HALF) > FASTER


def check_precision(device: torch.device, precision: str) -> None:
    """Refuse bf16 on a processor that would kill the run: some virtual machines offer AMX, then call it illegal."""
    if precision == "bf16" and device.type == "cpu" and _speed_in_half(HALF) == 0.0:
        raise ConfigError(
            "train.precision = bf16 ends in an illegal instruction on this processor; use fp32, or start with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment."
        )


@cache
def _speed_in_half(program: str) -> float:
    """What a Python program of that text prints, which has a process of its own; 0 where a signal kills it."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    return 0.0 if done.returncode < 0 else float(done.stdout or 1.0)


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
