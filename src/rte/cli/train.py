"""`rte fit` and `rte resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rte.cli import options as opt
from rte.cli.advice import Advisor
from rte.cli.app import STARTED, app
from rte.cli.report import LastPage
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
    from collections.abc import Callable

    from rte.config import RunConfig
    from rte.report.progress import Bars
    from rte.train.trainer import Observer


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
    target: opt.Target = None,
    text: opt.Text = None,
    columns: opt.Columns = None,
    labels: opt.Labels = None,
    group: opt.Group = None,
    skip_bad: opt.SkipBad = False,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    schedule: opt.Schedule = None,
    clock: opt.Clock = None,
    report: opt.Report = True,
    tensorboard: opt.Events = False,
    trust_code: opt.TrustCode = False,
    out: opt.Out = None,
) -> None:
    """Train a robust classifier. What is not given is chosen by the data and the machine, and said."""
    from rte.run.start import start

    about = {"data_dir": data_dir, "columns": columns or (), "labels": labels, "group": group, "skip_bad": skip_bad}
    about |= {"target": target, "text": text}
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
    page = LastPage(data_dir) if report else None
    times: dict[str, Any] = {"budget": seconds, "started": STARTED, "clock": clock, "dataset": advisor.dataset}

    def train(bars: Bars, observer: Observer) -> dict[str, Any]:
        times["tell"] = bars.count("looking")
        return start(config, folder, data_dir=data_dir, observer=observer, afterwards=page, **times)

    finish(watched(train, config, folder, tensorboard=tensorboard), folder)
    if page:
        page.say(folder)


@app.command()
def resume(
    run: opt.Run,
    data_dir: opt.DataDir = None,
    report: opt.Report = True,
    tensorboard: opt.Events = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Go on with a run or a comparison that was stopped or killed, exactly where its last checkpoint left it."""
    from rte.cli.compare import go_on
    from rte.report.events import FOLDER
    from rte.run.folder import read_config
    from rte.run.start import resume as resume_run

    if (run / "compare.json").is_file():
        go_on(run, data_dir, trust_code=trust_code)
        return
    config = read_config(run, trust_code=trust_code)
    page = LastPage(data_dir) if report else None

    def train(bars: Bars, observer: Observer) -> dict[str, Any]:
        return resume_run(run, data_dir=data_dir, observer=observer, trust_code=trust_code, afterwards=page)

    finish(watched(train, config, run, tensorboard=tensorboard or (run / FOLDER).is_dir()), run)
    if page:
        page.say(run)


def watched(
    train: Callable[[Bars, Observer], dict[str, Any]], config: RunConfig, folder: Path, *, tensorboard: bool
) -> dict[str, Any]:
    """Train behind a progress bar, and with event files where they are wanted."""
    from rte.report.events import EventFiles, Watchers
    from rte.report.progress import Bars

    events = EventFiles(folder) if tensorboard else None
    try:
        with Bars(make_console()) as bars:
            bar = bars.run(config.method_label)
            return interruptible(lambda: train(bars, bar if events is None else Watchers([bar, events])), folder)
    finally:
        if events is not None:
            events.close()
