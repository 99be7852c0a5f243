"""The command line. Heavy imports happen inside the commands, so that `rte --help` answers at once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rte.cli.app import app
from rte.errors import UserError

__all__ = ["app", "main"]

for name in ("train", "tune", "use", "reproduce", "catalogue", "data", "noise"):  # the order of `rte --help`
    import_module(f"rte.cli.{name}")


def _say(usual: Callable[..., None]) -> Callable[..., None]:
    """Show warnings that are meant for the user as one sentence, the others as usual."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if category.__module__.startswith("rte."):
            print(f"rte: {message}", file=sys.stderr)
        else:
            usual(message, category, *rest, **more)

    return show


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    warnings.showwarning = _say(warnings.showwarning)
    try:
        app()
    except UserError as error:
        print(f"rte: {error}", file=sys.stderr)
        sys.exit(2)
