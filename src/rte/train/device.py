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
    """The device asked for; "auto" takes CUDA, then MPS, then the CPU. Each process of torchrun has its own GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device = '{name}' is no device; use auto, cpu, cuda or mps.") from None
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not present.get(device.type, False):
        raise ConfigError(f"train.device = '{name}' is not available on this machine; use auto or cpu.")
    if device.type != "cuda":
        return device
    local, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if device.index is not None and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            f"train.device = '{name}' would put all processes of torchrun on one GPU; use cuda, then each has its own."
        )
    index = local if device.index is None else device.index
    if index >= there:
        raise ConfigError(
            f"process {local} wants GPU {index}, but this machine has {there}; start torchrun with "
            f"--nproc-per-node {there} or less, or set train.device=cpu."
        )
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def seed(device: torch.device, key: int) -> None:
    """Begin torch's random numbers anew at a 64-bit key, as torch.manual_seed does for all devices at once.

    That one notes where it was called from, which on the CPU takes a millisecond or two: much of a small step.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(key >> 1)
    else:
        torch.manual_seed(key >> 1)


HALF = """
import time, torch

x_size = 64 * 16 * 16

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

single, half = seconds(torch.float32), seconds(torch.bfloat16)
print(single / half, 6 * 64 * 64 * 9 * x_size / single)
"""
"""A program that computes in bfloat16, and prints how many times as fast a convolution is so, and FLOP/s in single
precision."""
FASTER = 1.3
"""How many times as fast it must be for `auto`: what is no convolution gains less."""
USUAL = 1e11
"""FLOP/s that a machine is taken to have which cannot be asked."""


def faster_in_half(device: torch.device) -> bool:
    """Whether "auto" means bf16: on processors that are faster in it, as those with AMX are; elsewhere it must be asked
    for."""
    return device.type == "cpu" and _measured(HALF)[0] > FASTER


def convolution_speed(precision: str) -> float:
    """FLOP/s of a wide convolution, there and back, on this machine's processor."""
    ratio, speed = _measured(HALF)
    return speed * max(1.0, ratio) if precision == "bf16" else speed


def check_precision(device: torch.device, precision: str) -> None:
    """Refuse bf16 where it is emulated, and on a processor that would kill the run: some virtual machines offer AMX,
    then call it illegal."""
    if precision == "bf16" and device.type == "cpu" and _measured(HALF)[0] == 0.0:
        raise ConfigError(
            "train.precision = bf16 ends in an illegal instruction on this processor; use fp32, or start with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the environment."
        )
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ConfigError(
            f"train.precision = bf16 is only emulated on {torch.cuda.get_device_name(device)}, which is slower than "
            "single precision; use tf32 or fp32."
        )


@cache
def _measured(program: str) -> tuple[float, float]:
    """The two numbers that a Python program of that text prints, which has a process of its own; 0 for the first where
    a signal kills it."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    if done.returncode < 0:
        return 0.0, USUAL
    numbers = [*map(float, done.stdout.split()), 1.0, USUAL]
    return (numbers[0], numbers[1]) if len(numbers) > 3 else (numbers[0], USUAL)


def set_arithmetic(precision: str, *, deterministic: bool) -> None:
    """What GPUs may do to be fast: shorten factors to TF32, try out kernels, add in any order. Processors do none."""
    if not torch.cuda.is_available():
        return
    short = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = short
    torch.backends.cudnn.allow_tf32 = short
    torch.backends.cudnn.benchmark = not deterministic  # which kernel wins is a matter of time
    torch.backends.cudnn.deterministic = deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic)


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
