"""`rte reproduce`."""

from __future__ import annotations

from pathlib import Path

import typer

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


@app.command()
def reproduce(
    table: opt.TableName = "list",
    size: opt.SizeName = "laptop",
    out: opt.GridOut = Path("runs/reproduce"),
    results: opt.Results = None,
    data_dir: opt.DataDir = None,
    seeds: opt.Seeds = 1,
    only: opt.Only = None,
    shard: opt.Shard = None,
    preset: opt.AllPreset = None,
    settings: opt.Set = None,
    dry_run: opt.DryRun = False,
    summarise: opt.Summarise = False,
    yes: opt.Yes = False,
) -> None:
    """Train a table or figure of the paper, at its size or at a laptop's; stop it and call it again to go on."""
    from rte.reproduce import command
    from rte.reproduce.plan import Options

    if table == "list":
        command.listing(make_console(), out)
        return
    options = Options(size, preset, tuple(settings or ()), seeds, tuple(only or ()))  # type: ignore[arg-type]
    how = command.How(out, results, data_dir, shard, dry_run=dry_run, only_summarise=summarise, yes=yes)
    if not command.reproduce(table, options, how, make_console()):
        raise typer.Exit(130)
