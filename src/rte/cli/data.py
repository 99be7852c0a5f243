"""`rte data`."""

from __future__ import annotations

from rte.cli import options as opt
from rte.cli.app import data_app
from rte.cli.words import make_console


@data_app.command("get")
def data_get(name: opt.Download, to: opt.To = None) -> None:
    """Download a dataset and check it against its published checksum."""
    from rte.data.get import fetch

    console = make_console()
    fetch(name, to, say=lambda text: console.print(text, highlight=False))
