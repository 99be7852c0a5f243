"""The command line. Heavy imports happen inside the commands, so that `rte --help` answers at once."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rte.cli.app import app
from rte.cli.examples import attach
from rte.errors import UserError

__all__ = ["app", "main"]

for name in (
    "train",
    "compare",
    "tune",
    "use",
    "audit",
    "report",
    "embed",
    "reproduce",
    "catalogue",
    "data",
    "noise",
    "doctor",
):  # the order of `rte --help`
    import_module(f"rte.cli.{name}")
attach(app)


def _say(usual: Callable[..., None]) -> Callable[..., None]:
    """Show warnings that are meant for the user as one sentence, and once; the others as usual."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not category.__module__.startswith("rte."):
            usual(message, category, *rest, **more)
        elif str(message) not in said:
            said.add(str(message))
            print(f"rte: {message}", file=sys.stderr)

    return show


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    warnings.showwarning = _say(warnings.showwarning)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may be no Unicode, or the terminal may know little
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except UserError as error:
        refuse(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        refuse(f"{error.filename}: {error.strerror}; mend that, or give another path.")
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        refuse("there is not enough memory; lower train.batch, or set train.accumulate to compute a batch in pieces.")


def _lacks_memory(error: Exception) -> bool:
    """Whether memory was refused, also by torch, which is not imported for that."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool({"MemoryError", "OutOfMemoryError"} & names) or "can't allocate memory" in str(error)


def refuse(sentence: str) -> None:
    """End with what the user can mend."""
    print(f"rte: {sentence}", file=sys.stderr)
    sys.exit(2)
