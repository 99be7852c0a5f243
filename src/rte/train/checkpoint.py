"""Checkpoints: atomic, versioned, loaded without executing anything they contain."""

from __future__ import annotations

import errno
import pickle
import warnings
from pathlib import Path
from typing import Any

import torch

from rte.errors import CheckpointError
from rte.files import write_atomic

FORMAT = 1
State = dict[str, Any]


def save(path: Path, state: State) -> None:
    """Write `state` (tensors and plain values); a kill at any moment leaves the old checkpoint or the new one."""
    write_atomic(path, lambda file: torch.save({"format": FORMAT, **state}, file))


def load(path: Path) -> State:
    """Read a checkpoint that `save` wrote, to the CPU."""
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}; is {path.parent} the folder of a run that has started?")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about foreign pickles, which are refused below in our own words
            state: State = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise CheckpointError(f"{path} does not fit into this machine's memory; free some, then try again.") from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, pickle.UnpicklingError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # which a file cut short gives
            raise CheckpointError(
                f"{path} cannot be read ({error.strerror}); mend that, then try again: the file may well be whole."
            ) from None
        if "alloc" in str(error).lower():  # torch's word for too little memory
            raise CheckpointError(
                f"{path} does not fit into this machine's memory; free some, then try again."
            ) from None
        raise CheckpointError(
            f"{path} is damaged or cut short; delete it and resume to train from the start, or restore a copy."
        ) from None
    if not isinstance(state, dict) or "format" not in state:
        raise CheckpointError(f"{path} is no checkpoint of this program; give the folder of a run.")
    if state["format"] != FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {state['format']}, this version of rte reads {FORMAT}; "
            "use the version that wrote it (see environment.json beside it)."
        )
    return state
