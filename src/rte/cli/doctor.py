"""`rte doctor` and `rte --version`."""

from __future__ import annotations

from typing import Annotated

import typer

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


def _print_version(wanted: bool) -> None:
    if wanted:
        import rte

        print(f"rte {rte.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train classifiers straight from noisy labels."""


@app.command()
def doctor(data_dir: opt.DataDir = None, as_json: opt.AsJson = False) -> None:
    """Look at this machine: versions, devices, threads, memory, data and extras; what is slow or missing, and why."""
    import json
    from dataclasses import asdict

    from rich.markup import escape
    from rich.table import Table

    from rte.run.doctor import examine

    if as_json:
        print(json.dumps([asdict(finding) for finding in examine(data_dir)], indent=2, ensure_ascii=False))
        return
    colour = {"fine": "green", "note": "cyan", "slow": "yellow", "broken": "red"}
    table = Table(show_header=False, box=None, pad_edge=False)
    for finding in examine(data_dir):
        mark = f"[{colour[finding.kind]}]{finding.kind}[/]"
        advice = f"\n[dim]{escape(finding.advice)}[/]" if finding.advice else ""
        table.add_row(finding.about, mark, escape(finding.what) + advice)
    make_console().print(table)
