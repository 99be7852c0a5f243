"""`rte list`."""

from __future__ import annotations

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


@app.command("list")
def list_names(what: opt.What = "all", as_json: opt.AsJson = False) -> None:
    """Show what there is: methods, datasets, networks, presets, kinds of noise; of methods what they need and cost."""
    import json

    from rich.table import Table

    from rte.report.catalogue import as_tree, catalogue
    from rte.report.tables import methods

    if as_json:
        print(json.dumps(as_tree(what), indent=2, ensure_ascii=False))
        return
    if what == "methods":
        from rte.report.profiles import profiles

        console = make_console()
        console.print(*methods(profiles(), console.width), sep="\n", highlight=False)
        return
    for title, rows in catalogue(what).items():
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        for name, summary in rows.items():
            table.add_row(f"  [bold]{name}[/]", summary)
        make_console().print(table)
