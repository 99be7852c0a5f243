"""Checkpoints: atomic, versioned, checked, loaded without executing anything they contain.

Each part of a checkpoint carries a checksum, as torch writes it; torch itself does not look at it when it reads. Of the
states of a run the one before the last is kept beside it, for when the last one is damaged.
"""

from __future__ import annotations

import errno
import os
import pickle
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from rte.errors import CheckpointError
from rte.files import write_atomic

FORMAT = 1
State = dict[str, Any]


class Damaged(CheckpointError):
    """A checkpoint that is not what was written."""


class FellBack(UserWarning):
    """The state before the last one is used."""


def save(path: Path, state: State, *, keep: bool = False) -> None:
    """Write `state` (tensors and plain values); a kill at any moment leaves the old checkpoint or the new one.

    `keep`: what was there stays as `previous(path)`.
    """
    if keep and path.is_file():
        _keep(path)
    write_atomic(path, lambda file: torch.save({"format": FORMAT, **state}, file))


def previous(path: Path) -> Path:
    """The name of the state before the one of that name."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def _keep(path: Path) -> None:
    """Give the state that is there a second name, without a moment in which it has none."""
    second = previous(path)
    temporary = second.with_name(f".{second.name}.{os.getpid()}.part")
    with suppress(OSError):  # file systems without links keep the last state alone
        temporary.unlink(missing_ok=True)
        os.link(path, temporary)
        temporary.replace(second)


def load_last(path: Path) -> State:
    """Read the checkpoint, or with a warning the one before, if the last one is damaged and that one is whole."""
    try:
        return load(path)
    except Damaged as error:
        try:
            state = load(previous(path))
        except CheckpointError:
            raise error from None
        said = f"{path} is damaged or cut short; {previous(path).name}, the state before it, is used instead."
        warnings.warn(said, FellBack, stacklevel=1)
        return state


def load(path: Path) -> State:
    """Read a checkpoint that `save` wrote, to the CPU."""
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}; is {path.parent} the folder of a run that has started?")
    try:
        _check(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about foreign pickles, which are refused below in our own words
            state: State = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise CheckpointError(f"{path} does not fit into this machine's memory; free some, then try again.") from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # which a file cut short gives
            raise CheckpointError(
                f"{path} cannot be read ({error.strerror}); mend that, then try again: the file may well be whole."
            ) from None
        if "alloc" in str(error).lower():  # torch's word for too little memory
            raise CheckpointError(
                f"{path} does not fit into this machine's memory; free some, then try again."
            ) from None
        raise Damaged(
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


def _check(path: Path) -> None:
    """Compare every part with its checksum; parts that would have to be inflated are none that torch wrote."""
    with zipfile.ZipFile(path) as archive:
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise zipfile.BadZipFile("a part is compressed")
        if (name := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{name} is not what was written")
