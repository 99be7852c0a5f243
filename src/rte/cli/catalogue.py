"""`rte list`."""

from __future__ import annotations

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


@app.command("list")
def list_names(what: opt.What = "all") -> None:
    """Show what there is: methods, datasets, networks, presets, kinds of noise."""
    from rich.table import Table

    from rte.report.catalogue import catalogue

    for title, rows in catalogue(what).items():
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        for name, summary in rows.items():
            table.add_row(f"  [bold]{name}[/]", summary)
        make_console().print(table)
