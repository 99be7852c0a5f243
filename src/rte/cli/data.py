"""`rte data`."""

from __future__ import annotations

from typing import Any

from rte.cli import options as opt
from rte.cli.app import data_app
from rte.cli.words import make_console


@data_app.command("check")
def data_check(
    data: opt.Data,
    columns: opt.Columns = None,
    labels: opt.Labels = None,
    group: opt.Group = None,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    as_json: opt.AsJson = False,
) -> None:
    """Read everything once and say what is there: counts, sizes, unreadable files, copies, contradicting labels."""
    import json
    import sys

    from rich.console import Console
    from rich.progress import Progress

    from rte.config import parse_data, resolve
    from rte.report.check import screen
    from rte.run.check import check

    tree = parse_data(data, data_dir=data_dir, columns=columns or (), labels=labels, group=group)
    config = resolve(None, {"data": tree}, settings or ())
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("reading", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, advance=done, total=total)

        found, left_out = check(config, data_dir, progress)
    result: dict[str, Any] = {**found.tree(), "left_out": left_out}
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    make_console().print(screen(result, left_out, []), highlight=False, markup=False)


@data_app.command("get")
def data_get(name: opt.Download, to: opt.To = None) -> None:
    """Download a dataset and check it against its published checksum."""
    from rte.data.get import fetch

    console = make_console()
    fetch(name, to, say=lambda text: console.print(text, highlight=False))
