"""Examples that cannot be used: refused in one sentence, or left out and counted, as the user wishes."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rte.errors import DataError

SKIP = "leave out examples that cannot be used (no label, a label that is no class, no readable file) and say how many"
REMEDY = "add --skip-bad to leave such examples out, or mend them"


class LeftOut(UserWarning):
    """Examples of the user's that are not used, how many and why."""


def leave_out(bad: NDArray[np.bool_], what: str, first: Callable[[int], str], *, skip: bool) -> NDArray[np.int64]:
    """The rows that are not `bad` (N,). With `skip` the others are counted in a warning, else they are refused.

    what: "have no label"; first(i) names example i and says what is wrong with it.
    """
    wrong = np.flatnonzero(bad)
    if not len(wrong):
        return np.arange(len(bad))
    example = first(int(wrong[0]))
    if not skip:
        if len(wrong) == 1:
            raise DataError(f"{example}; {REMEDY}.")
        raise DataError(f"{example}, and {len(wrong) - 1:,} of {len(bad):,} others {what}; {REMEDY}.")
    more = "" if len(wrong) == 1 else ", the first"
    warnings.warn(
        f"{len(wrong):,} of {len(bad):,} examples {what} and are left out{more}: {example}.", LeftOut, stacklevel=3
    )
    if len(wrong) == len(bad):
        raise DataError(f"no example is left: all {len(bad):,} {what}; {example}.")
    return np.flatnonzero(~bad)
