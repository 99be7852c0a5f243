"""How kernels are compiled: on first use, to run without the GIL, and kept on disk for the next process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
INNER: dict[str, Any] = {**COMMON, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
SOURCES = ("kernels_*.py", "operations.py")


@cache
def digest(folder: Path) -> str:
    """A short hash of the source of every kernel in a folder.

    Numba's disk cache only looks at the file of the function that is called, so a kernel whose parts changed in another
    file, or in an upgrade that kept the file's time, would be served stale; with this hash in its name it cannot.
    """
    sources = [path for pattern in SOURCES for path in sorted(folder.glob(pattern))]
    return blake2b(b"".join(path.read_bytes() for path in sources), digest_size=6).hexdigest()


def inner(function: F) -> F:
    """A function that kernels call; Python cannot, which spares the compiler a wrapper."""
    return cast(F, numba.njit(**INNER)(function))


def kernel(function: F) -> F:
    """A function that Python calls, with the signature it is written with.

    Numba keeps the result beside the source or, where that cannot be written, in the user's cache folder; where
    neither can, every process compiles anew.
    """
    folder = Path(function.__code__.co_filename).parent
    function.__qualname__ = f"{function.__qualname__}_{digest(folder)}"
    try:
        compiled = numba.njit(**COMMON, cache=True)(function)
    except RuntimeError:
        compiled = numba.njit(**COMMON)(function)
    return cast(F, compiled)
