"""`rte data`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rte.cli import options as opt
from rte.cli.app import data_app
from rte.cli.words import make_console

if TYPE_CHECKING:
    from rte.data.types import Dataset


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
    choices = advise(found.dataset, {"data": tree})
    result: dict[str, Any] = {**found.tree(), "left_out": left_out, "choices": choices}
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    make_console().print(screen(result, left_out, choices), highlight=False, markup=False)


def advise(dataset: Dataset, said: dict[str, Any]) -> list[str]:
    """What `rte fit` would choose for such data here, and why, in lines."""
    from rte.cli.advice import OWN
    from rte.errors import UserError
    from rte.report.choices import written
    from rte.run.facts import choices_for

    if said["data"]["name"] in OWN:
        return []
    try:
        choices = choices_for(dataset, said)
    except UserError:  # what is wrong has been said already
        return []
    return [] if choices is None else written(choices)


@data_app.command("get")
def data_get(name: opt.Download, to: opt.To = None) -> None:
    """Download a dataset and check it against its published checksum."""
    from rte.data.get import fetch

    console = make_console()
    fetch(name, to, say=lambda text: console.print(text, highlight=False))
