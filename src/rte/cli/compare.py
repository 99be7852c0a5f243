"""`rte compare`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rte.cli import options as opt
from rte.cli.app import STARTED, app
from rte.cli.words import announce, make_config, make_console, method_names, read_budget, run_name

if TYPE_CHECKING:
    from rte.compare.plan import Comparison


@app.command()
def compare(
    data: opt.Data = "digits",
    methods: opt.Methods = "ce,gce,rte",
    preset: opt.Preset = None,
    noise: opt.Noise = None,
    net: opt.Net = None,
    init: opt.Init = None,
    frozen: opt.Frozen = False,
    epochs: opt.Epochs = None,
    budget: opt.Budget = None,
    seeds: opt.Seeds = 1,
    rates: opt.Rates = None,
    seed: opt.Seed = None,
    target: opt.Target = None,
    text: opt.Text = None,
    columns: opt.Columns = None,
    labels: opt.Labels = None,
    group: opt.Group = None,
    skip_bad: opt.SkipBad = False,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    trust_code: opt.TrustCode = False,
    out: opt.OutOfMany = None,
) -> None:
    """Train several methods on the same noisy labels and print one table.

    Every method gets the same network, optimiser, seeds, and epochs (or time, with --budget). What a method's authors
    set in epochs is a share of the run. With --rates each method gets the best learning rate, chosen on held-out noisy
    labels. A stopped comparison goes on with `rte resume`.
    """
    from rte import registry
    from rte.compare.plan import plan
    from rte.files import unused
    from rte.reproduce.define import compared

    seconds = read_budget(budget, epochs)

    about = {"data_dir": data_dir, "columns": columns or (), "labels": labels, "group": group, "skip_bad": skip_bad}
    about |= {"target": target, "text": text}

    def configure(name: str) -> Any:
        rest: dict[str, Any] = {"init": init, "frozen": frozen, "trust_code": trust_code, "about_data": about}
        return make_config(data, name, preset, noise, net, epochs, seed, settings, **rest)

    groups = {"all": registry.methods, "paper": compared}
    names = groups[methods]() if methods in groups else method_names(methods)
    comparison, notes = plan(names, configure, group=methods in groups, seeds=seeds, rates=rates, budget=seconds)
    for note in notes:
        print(f"rte: {note}", file=sys.stderr)
    announce(comparison.configs[0])
    folder = out or unused(Path("runs") / run_name(comparison.configs[0], "compare"))
    run_comparison(comparison, folder, data_dir, new=True, trust_code=trust_code)


def go_on(folder: Path, data_dir: Path | None, *, trust_code: bool) -> None:
    """A comparison that was stopped or killed."""
    from rte.compare.runner import reopen

    comparison, where = reopen(folder, data_dir, trust_code=trust_code)
    run_comparison(comparison, folder, where, new=False, trust_code=trust_code)


def run_comparison(comparison: Comparison, folder: Path, data_dir: Path | None, *, new: bool, trust_code: bool) -> None:
    from rte.compare.runner import begin, train
    from rte.files import write_atomic
    from rte.report.comparison import draw, page, table
    from rte.report.progress import Bars
    from rte.report.tables import heading
    from rte.run.folder import held
    from rte.train.distributed import World
    from rte.train.trainer import Interrupted

    console = make_console()
    if new:
        begin(comparison, folder, data_dir)
    try:
        with held(folder, World.join()), Bars(console) as bars:
            where: dict[str, Any] = {"data_dir": data_dir, "trust_code": trust_code}
            rows = train(comparison, folder, watch=bars.run, started=STARTED, **where)
    except Interrupted as stop:
        print(f"rte: stopped by {stop}; the state is saved, go on with `rte resume {folder}`.", file=sys.stderr)
        raise typer.Exit(130) from None
    if not World.join().first:
        return
    done = [row for row in rows if not row.failed]
    for row in rows:
        if row.failed:
            print(f"rte: {row.method} failed: {row.failed}", file=sys.stderr)
    if not done:
        raise typer.Exit(1)
    title = heading(_first_result(folder, done[0].folders[0]))
    command = shlex.join(["rte", *sys.argv[1:]]) if new else f"rte resume {folder}"
    write_atomic(folder / "comparison.md", lambda file: file.write(page(title, rows, command).encode()))
    draw(done, folder, title)
    console.print(table(title, rows))
    console.print(f"The run folders, the table and the figure are in {folder}", highlight=False)


def _first_result(folder: Path, name: str) -> dict[str, Any]:
    from rte.files import read_json

    result: dict[str, Any] = read_json(folder / name / "result.json")
    return result
