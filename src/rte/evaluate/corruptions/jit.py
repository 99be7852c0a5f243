"""How the kernels of this folder are compiled: on first use, to run without the GIL, and kept for the next process."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
INNER: dict[str, Any] = {**COMMON, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Numba's cache on disk overlooks a change in another file than the kernel's own; a name with this hash does not. The
# views have a hash of their own, so that a new augmentation costs no new compilation here.
_SOURCES = sorted(Path(__file__).parent.glob("kernels_*.py"))
DIGEST = blake2b(b"".join(path.read_bytes() for path in _SOURCES), digest_size=6).hexdigest()


def part(function: F) -> F:
    """A function that only kernels call, which spares the compiler the wrappers for Python."""
    return cast(F, numba.njit(**INNER)(function))


def kernel(function: F) -> F:
    """A function that Python calls; compiled in every process where no folder for the cache can be written."""
    function.__qualname__ = f"{function.__qualname__}_{DIGEST}"
    try:
        compiled = numba.njit(**COMMON, cache=True)(function)
    except RuntimeError:
        compiled = numba.njit(**COMMON)(function)
    return cast(F, compiled)
