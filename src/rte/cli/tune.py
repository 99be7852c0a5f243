"""`rte tune`."""

from __future__ import annotations

from pathlib import Path

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import finish, interruptible, make_config, make_console, run_name


@app.command()
def tune(
    data: opt.DataIfNew = None,
    method: opt.Method = None,
    preset: opt.Preset = None,
    noise: opt.Noise = None,
    net: opt.Net = None,
    epochs: opt.Epochs = None,
    seed: opt.Seed = None,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    population: opt.Population = None,
    interval: opt.Interval = None,
    search: opt.Search = None,
    asynchronous: opt.Asynchronous = False,
    cpus: opt.Cpus = None,
    gpus: opt.Gpus = None,
    address: opt.Address = None,
    dashboard: opt.Dashboard = False,
    resume: opt.Resume = None,
    trust_code: opt.TrustCode = False,
    out: opt.Out = None,
) -> None:
    """Search for a schedule of hyperparameters by population based training, on Ray Tune."""
    from rte.report import tuning

    trials = {"cpus_per_trial": cpus, "gpus_per_trial": gpus}
    if resume is not None:
        given = (data, method, preset, noise, net, epochs, seed, settings, population, interval, search, out)
        plan, folder = (
            tuning.planned(resume, trials, data_dir, (*given, asynchronous or None), trust_code=trust_code),
            resume,
        )
    else:
        config = make_config(
            data or "digits", method, preset, noise, net, epochs, seed, settings, trust_code=trust_code
        )
        options = {"population": population, "interval": interval, "asynchronous": asynchronous, **trials}
        plan = tuning.plan(config, options, search or (), data_dir)
        folder = tuning.begin(plan, out or Path("runs") / run_name(config, f"{config.method_label}-tune"))
    result = interruptible(
        lambda: tuning.go(plan, folder, make_console(), address=address, dashboard=dashboard), folder, "tune --resume"
    )
    finish(result, folder)
