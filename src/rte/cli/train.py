"""`rte fit` and `rte resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rte.cli import options as opt
from rte.cli.advice import Advisor
from rte.cli.app import STARTED, app
from rte.cli.words import (
    announce,
    finish,
    interruptible,
    make_config,
    make_console,
    read_budget,
    run_name,
)
from rte.errors import UserError

if TYPE_CHECKING:
    from rte.config import RunConfig
    from rte.data.types import Dataset
    from rte.report.progress import Bars


@app.command()
def fit(
    data: opt.Data = "digits",
    method: opt.Method = None,
    preset: opt.Preset = None,
    noise: opt.Noise = None,
    net: opt.Net = None,
    init: opt.Init = None,
    frozen: opt.Frozen = False,
    epochs: opt.Epochs = None,
    budget: opt.Budget = None,
    seed: opt.Seed = None,
    columns: opt.Columns = None,
    labels: opt.Labels = None,
    group: opt.Group = None,
    skip_bad: opt.SkipBad = False,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    schedule: opt.Schedule = None,
    clock: opt.Clock = None,
    trust_code: opt.TrustCode = False,
    out: opt.Out = None,
) -> None:
    """Train a robust classifier. What is not given is chosen by the data and the machine, and said."""
    about = {"data_dir": data_dir, "columns": columns or (), "labels": labels, "group": group, "skip_bad": skip_bad}
    advisor = Advisor(data_dir, read_budget(budget, epochs), epochs)
    rest: dict[str, Any] = {"init": init, "frozen": frozen, "trust_code": trust_code, "about_data": about}
    rest["advisor"] = advisor
    config = make_config(data, method, preset, noise, net, epochs, seed, settings, schedule, **rest)
    folder = out or Path("runs") / run_name(config)
    advisor.say()
    announce(config)
    seconds = advisor.seconds
    if clock is not None and seconds is None and config.train.budget is None:
        raise UserError("--clock repeats a run with a budget; give the same --budget that it had.")
    dataset = advisor.dataset
    finish(train_run(config, folder, data_dir, budget=seconds, started=STARTED, clock=clock, dataset=dataset), folder)


@app.command()
def resume(run: opt.Run, data_dir: opt.DataDir = None, trust_code: opt.TrustCode = False) -> None:
    """Go on with a run or a comparison that was stopped or killed, exactly where its last checkpoint left it."""
    from rte.cli.compare import go_on
    from rte.report.progress import Bars
    from rte.run.folder import read_config
    from rte.run.start import resume as resume_run

    if (run / "compare.json").is_file():
        go_on(run, data_dir, trust_code=trust_code)
        return
    config = read_config(run, trust_code=trust_code)
    with Bars(make_console()) as bars:
        result = interruptible(lambda: resume_run(run, data_dir=data_dir, observer=bars.run(config.method_label)), run)
    finish(result, run)


def train_run(
    config: RunConfig,
    folder: Path,
    data_dir: Path | None,
    bars: Bars | None = None,
    budget: float | None = None,
    started: float | None = None,
    clock: Path | None = None,
    dataset: Dataset | None = None,
) -> dict[str, Any]:
    from rte.report.progress import Bars
    from rte.run.start import start

    if bars is None:
        with Bars(make_console()) as own:
            return train_run(config, folder, data_dir, own, budget, started, clock, dataset)
    observer = bars.run(config.method_label)
    times: dict[str, Any] = {"budget": budget, "started": started, "clock": clock, "dataset": dataset}
    times["tell"] = bars.count("looking")
    return interruptible(lambda: start(config, folder, data_dir=data_dir, observer=observer, **times), folder)
