"""The command line. Heavy imports happen inside the commands, so that `rte --help` answers at once."""

from __future__ import annotations

import sys
from importlib import import_module

from rte.cli.app import app
from rte.errors import UserError

__all__ = ["app", "main"]

for name in ("train", "tune", "use", "reproduce", "catalogue", "data", "noise"):  # the order of `rte --help`
    import_module(f"rte.cli.{name}")


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"rte: {error}", file=sys.stderr)
        sys.exit(2)
