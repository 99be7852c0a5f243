"""How much memory a run takes at most."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import torch

STATISTICS = Path("/proc/self/statm")
EVERY = 0.05
"""Seconds between two looks."""


class Peak:
    """Within, looks at the memory of the process twenty times a second; `bytes` is the most that was seen.

    Of the GPU on CUDA, else of the process, Python and its libraries included; None where the system does not say.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        elif resident() is not None:
            give_back()
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self.device.type == "cuda":
            self.bytes = torch.cuda.max_memory_allocated(self.device)
        elif self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes or 0, resident() or 0)
            if self._over.wait(EVERY):
                return


def give_back() -> None:
    """Return to the system what earlier runs of this process have freed, where the C library can."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int | None:
    """Bytes that the process holds in memory now; None where the system does not say."""
    try:
        return int(STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
