"""The command line. Heavy imports happen inside the commands, so that `rte --help` answers at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rte import options as opt
from rte.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from rte.config import RunConfig
    from rte.report.progress import Bars

app = typer.Typer(
    help="Train image classifiers straight from noisy labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(help="Fetch datasets, and look at what a run would be trained on.", no_args_is_help=True)
app.add_typer(data_app, name="data")
noise_app = typer.Typer(help="Make noise shaped like the mistakes of a classifier.", no_args_is_help=True)
app.add_typer(noise_app, name="noise")


@app.command()
def fit(
    data: opt.Data = "digits",
    method: opt.Method = None,
    preset: opt.Preset = None,
    noise: opt.Noise = None,
    net: opt.Net = None,
    epochs: opt.Epochs = None,
    budget: opt.Budget = None,
    seed: opt.Seed = None,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    schedule: opt.Schedule = None,
    out: opt.Out = None,
) -> None:
    """Train a robust classifier; by default with RTE."""
    config = _config(data, method, preset, noise, net, epochs, seed, settings, schedule)
    folder = out or Path("runs") / run_name(config)
    _finish(_train(config, folder, data_dir, budget=_seconds(budget, epochs)), folder)


@app.command()
def compare(
    data: opt.Data = "digits",
    methods: opt.Methods = "ce,gce,rte",
    preset: opt.Preset = None,
    noise: opt.Noise = None,
    net: opt.Net = None,
    epochs: opt.Epochs = None,
    budget: opt.Budget = None,
    seed: opt.Seed = None,
    settings: opt.Set = None,
    data_dir: opt.DataDir = None,
    out: opt.OutOfMany = None,
) -> None:
    """Train several methods on the same noisy labels and print one table."""
    from rte.files import unused
    from rte.report.progress import Bars
    from rte.report.tables import comparison

    seconds = _seconds(budget, epochs)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    configs = [_config(data, name, preset, noise, net, epochs, seed, settings) for name in names]
    folder = out or unused(Path("runs") / run_name(configs[0], "compare"))
    console = _console()
    results: list[dict[str, Any]] = []
    with Bars(console) as bars:
        for config in configs:
            same = config.with_net(results[0]["net"]) if results and seconds else config  # which a budget may choose
            results.append(_train(same, folder / config.method_name, data_dir, bars, seconds))
    console.print(comparison(results))
    console.print(
        "Run folders:", *(f"  {folder / config.method_name}" for config in configs), sep="\n", highlight=False
    )


@app.command()
def resume(run: opt.Run, data_dir: opt.DataDir = None) -> None:
    """Go on with a run that was stopped or killed, exactly where its last checkpoint left it."""
    from rte.report.progress import Bars
    from rte.run import read_config
    from rte.run import resume as resume_run

    config = read_config(run)
    with Bars(_console()) as bars:
        result = _interruptible(lambda: resume_run(run, data_dir=data_dir, observer=bars.run(config.method_name)), run)
    _finish(result, run)


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
    out: opt.Out = None,
) -> None:
    """Search for a schedule of hyperparameters by population based training, on Ray Tune."""
    from rte import tune as search_runs

    trials = {"cpus_per_trial": cpus, "gpus_per_trial": gpus}
    if resume is not None:
        given = (data, method, preset, noise, net, epochs, seed, settings, population, interval, search, out)
        plan, folder = search_runs.planned(resume, trials, data_dir, (*given, asynchronous or None)), resume
    else:
        config = _config(data or "digits", method, preset, noise, net, epochs, seed, settings)
        options = {"population": population, "interval": interval, "asynchronous": asynchronous, **trials}
        plan = search_runs.plan(config, options, search or (), data_dir)
        folder = search_runs.begin(plan, out or Path("runs") / run_name(config, f"{config.method_name}-tune"))
    result = _interruptible(
        lambda: search_runs.go(plan, folder, _console(), address=address, dashboard=dashboard), folder, "tune --resume"
    )
    _finish(result, folder)


@app.command()
def evaluate(
    run: opt.Run,
    data_dir: opt.DataDir = None,
    which: opt.Which = None,
    json_file: opt.JsonFile = None,
    corruptions: opt.Corruptions = False,
    official: opt.Official = None,
) -> None:
    """Score a trained run on its test set: top-1, top-5, NLL, ECE; teacher and student."""
    from rte.files import write_json
    from rte.report.tables import corruption_errors, scores
    from rte.run import reopen

    method, examiner = reopen(run, data_dir=data_dir, which=which)
    result: dict[str, Any] = {**examiner(method), "memorisation": examiner.memorisation(method)}
    console = _console()
    console.print(scores(result))
    if corruptions or official:
        from rich.progress import Progress

        with Progress(console=console) as bar:
            task = bar.add_task("corruptions", total=None)
            result["corruptions"] = examiner.corruptions(
                method,
                official=official,
                progress=lambda step: bar.update(task, completed=step.done, total=step.total, description=step.name),
            )
        console.print(corruption_errors(result["corruptions"]))
    if json_file:
        write_json(json_file, result)


@app.command()
def reproduce(
    table: opt.TableName = "list",
    size: opt.SizeName = "laptop",
    out: opt.GridOut = Path("runs/reproduce"),
    results: opt.Results = None,
    data_dir: opt.DataDir = None,
    seeds: opt.Seeds = 1,
    only: opt.Only = None,
    part: opt.Part = None,
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
        command.listing(_console(), out)
        return
    options = Options(size, preset, tuple(settings or ()), seeds, tuple(only or ()))  # type: ignore[arg-type]
    how = command.How(out, results, data_dir, part, dry_run=dry_run, only_summarise=summarise, yes=yes)
    if not command.reproduce(table, options, how, _console()):
        raise typer.Exit(130)


@app.command()
def predict(run: opt.Run, images: opt.Images, out: opt.Csv = None, probabilities: opt.Probabilities = False) -> None:
    """Predict the class of new images."""
    from rte.predictor import Predictor, open_images

    predictor = Predictor.load(run)
    predictor.write_csv(open_images(images, predictor.task.channels), out, probabilities=probabilities)
    if out:
        _console().print(f"Predictions are in {out}.", highlight=False)


@app.command("list")
def list_names(what: opt.What = "all") -> None:
    """Show what there is: methods, datasets, networks, presets, kinds of noise."""
    from rich.table import Table

    from rte.report.catalogue import catalogue

    for title, rows in catalogue(what).items():
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        for name, summary in rows.items():
            table.add_row(f"  [bold]{name}[/]", summary)
        _console().print(table)


@data_app.command("get")
def data_get(name: opt.Download, to: opt.To) -> None:
    """Download a dataset and check it against its published checksum."""
    from rte.data.get import fetch

    console = _console()
    fetch(name, to, say=lambda text: console.print(text, highlight=False))


@noise_app.command("from-model")
def noise_from_model(
    run: opt.Run, out: opt.Matrix, on: opt.On = "test", data_dir: opt.DataDir = None, which: opt.Which = None
) -> None:
    """Write how a trained run confuses the classes, as the structure C of `--noise matrix:FILE:0.4`."""
    from rte.errors import ConfigError, did_you_mean
    from rte.run import reopen

    if on not in ("test", "train"):
        raise ConfigError(f"--on {on}: {did_you_mean(on, ('test', 'train'))}")
    method, examiner = reopen(run, data_dir=data_dir, which=which)
    _write_structure(out, examiner.confusion(method, on), examiner.dataset.classes)


@noise_app.command("from-confusion")
def noise_from_confusion(file: opt.Confusion, out: opt.Matrix) -> None:
    """Write the structure C of a confusion matrix, for `--noise matrix:FILE:0.4`."""
    from rte.noise.estimate import read_counts

    _write_structure(out, read_counts(file))


def _write_structure(out: Path, counts: Any, classes: tuple[str, ...] | None = None) -> None:
    from rte.noise.estimate import in_words, write_structure

    write_structure(out, counts, classes)
    end = f"The structure C is in {out}; use it as --noise matrix:{out}:0.4"
    _console().print(*in_words(counts, classes), end, sep="\n", highlight=False, soft_wrap=True)


def _config(
    data: str,
    method: str | None,
    preset: str | None,
    noise: str | None,
    net: str | None,
    epochs: int | None,
    seed: int | None,
    settings: list[str] | None,
    schedule: Path | None = None,
) -> RunConfig:
    from rte.config import parse_data, resolve
    from rte.noise.config import parse_noise

    options: dict[str, Any] = {"data": parse_data(data)}
    options |= {"seed": seed} if seed is not None else {}
    options |= {"noise": parse_noise(noise)} if noise is not None else {}
    options |= {"net": {"name": net, "wider": []}} if net is not None else {}
    options |= {"train": {"epochs": epochs}} if epochs is not None else {}
    options |= {"method": {"name": method}} if method is not None else {}
    preset = preset or ("digits" if data == "digits" else "default")
    if schedule is None:
        return resolve(preset, options, settings or ())
    from rte.search.schedule import read_schedule, resolve_with

    found = read_schedule(schedule)
    for note in found.notes():
        print(f"rte: {note}", file=sys.stderr)
    return resolve_with(found, preset, options, settings or ())


def run_name(config: RunConfig, method: str | None = None) -> str:
    """data-method-noise-seed: what a run folder is called unless --out says otherwise."""
    noise = (
        config.noise.name if config.noise.name in ("none", "labels") else f"{config.noise.name}-{config.noise.ratio:g}"
    )
    return f"{config.data_name}-{method or config.method_name}-{noise}-s{config.seed}"


def _seconds(budget: str | None, epochs: int | None) -> float | None:
    if budget is None:
        return None
    if epochs is not None:
        raise UserError("--budget and --epochs each set the length of the run; give one of them.")
    from rte.budget import parse_budget

    return parse_budget(budget)


def _train(
    config: RunConfig, folder: Path, data_dir: Path | None, bars: Bars | None = None, budget: float | None = None
) -> dict[str, Any]:
    from rte.report.progress import Bars
    from rte.run import start

    if bars is None:
        with Bars(_console()) as own:
            return _train(config, folder, data_dir, own, budget)
    observer = bars.run(config.method_name)
    return _interruptible(lambda: start(config, folder, data_dir=data_dir, observer=observer, budget=budget), folder)


def _interruptible(train: Callable[[], dict[str, Any]], folder: Path, command: str = "resume") -> dict[str, Any]:
    from rte.train.trainer import Interrupted

    try:
        return train()
    except Interrupted as stop:
        print(f"rte: stopped by {stop}; the state is saved, go on with `rte {command} {folder}`.", file=sys.stderr)
        raise typer.Exit(130) from None


def _finish(result: dict[str, Any], folder: Path) -> None:
    from rte.report.tables import heading, percent, scores

    console = _console()
    console.print(f"{result['method']} on {heading(result)}", highlight=False)
    if result["noise"]["warning"]:
        console.print(f"Note: {result['noise']['warning']}", highlight=False)
    console.print(scores(result))
    memory = result.get("memorisation") or {}
    if memory.get("memorised") is not None:
        learnt, seen_through = percent(memory["memorised"]), percent(memory["recovered"])
        console.print(
            f"Of the wrongly labelled training images {learnt} % were memorised and {seen_through} % are predicted as "
            "what they really are.",
            highlight=False,
        )
    console.print(f"Trained for {result['train_seconds']:.0f} s; the run folder is {folder}", highlight=False)


def _console() -> Console:
    from rich.console import Console

    return Console()


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"rte: {error}", file=sys.stderr)
        sys.exit(2)
