"""The command line. Heavy imports happen inside the commands, so that `rte --help` answers at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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

DataArgument = Annotated[
    str, typer.Argument(help="digits, cifar10, cifar100, FILE.npz, folder:PATH or table:FILE.csv; see `rte list data`.")
]
MethodOption = Annotated[str | None, typer.Option("--method", "-m", help="The method; see `rte list methods`.")]
PresetOption = Annotated[str | None, typer.Option("--preset", "-p", help="Settings by name, or a TOML or JSON file.")]
NoiseOption = Annotated[
    str | None,
    typer.Option("--noise", "-n", help="Noise to inject: symmetric:0.4, pair:0.2, labels:FILE:KEY, none ..."),
]
NetOption = Annotated[str | None, typer.Option("--net", help="The network; see `rte list nets`.")]
EpochsOption = Annotated[int | None, typer.Option("--epochs", "-e", help="Passes over the training set.")]
SeedOption = Annotated[int | None, typer.Option("--seed", "-s", help="Decides every random number of the run.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Any setting: --set method.q=0.3 --set train.lr=0.05; repeatable.")
]
DataDirOption = Annotated[
    Path | None, typer.Option("--data-dir", envvar="RTE_DATA", help="The folder that datasets are looked for in.")
]
RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]


@app.command()
def fit(
    data: DataArgument = "digits",
    method: MethodOption = None,
    preset: PresetOption = None,
    noise: NoiseOption = None,
    net: NetOption = None,
    epochs: EpochsOption = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    data_dir: DataDirOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder to make.")] = None,
) -> None:
    """Train a robust classifier; by default with RTE."""
    config = _config(data, method, preset, noise, net, epochs, seed, settings)
    folder = out or Path("runs") / run_name(config)
    _finish(_train(config, folder, data_dir), folder)


@app.command()
def compare(
    data: DataArgument = "digits",
    methods: Annotated[str, typer.Option("--methods", "-m", help="Names, separated by commas.")] = "ce,gce,rte",
    preset: PresetOption = None,
    noise: NoiseOption = None,
    net: NetOption = None,
    epochs: EpochsOption = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    data_dir: DataDirOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to make, one run folder per method.")
    ] = None,
) -> None:
    """Train several methods on the same noisy labels and print one table."""
    from rte.files import unused
    from rte.report.progress import Bars
    from rte.report.tables import comparison

    names = [name.strip() for name in methods.split(",") if name.strip()]
    configs = [_config(data, name, preset, noise, net, epochs, seed, settings) for name in names]
    folder = out or unused(Path("runs") / run_name(configs[0], "compare"))
    console = _console()
    with Bars(console) as bars:
        results = [_train(config, folder / config.method_name, data_dir, bars) for config in configs]
    console.print(comparison(results))
    console.print(
        "Run folders:", *(f"  {folder / config.method_name}" for config in configs), sep="\n", highlight=False
    )


@app.command()
def resume(run: RunArgument, data_dir: DataDirOption = None) -> None:
    """Go on with a run that was stopped or killed, exactly where its last checkpoint left it."""
    from rte.report.progress import Bars
    from rte.run import read_config
    from rte.run import resume as resume_run

    config = read_config(run)
    with Bars(_console()) as bars:
        result = _interruptible(lambda: resume_run(run, data_dir=data_dir, observer=bars.run(config.method_name)), run)
    _finish(result, run)


@app.command()
def evaluate(
    run: RunArgument,
    data_dir: DataDirOption = None,
    which: Annotated[str | None, typer.Option(help="checkpoint (the last state) or selected.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers to this file.")] = None,
    corruptions: Annotated[
        bool, typer.Option("--corruptions", help="Also the error under 15 corruptions of the test images, and the mCE.")
    ] = False,
    official: Annotated[
        Path | None,
        typer.Option("--official", help="Take the corrupted images from CIFAR-10-C's files in this folder."),
    ] = None,
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
def predict(
    run: RunArgument,
    images: Annotated[str, typer.Argument(help="An image, a folder of images, or an .npz with an array x.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a CSV here instead of to the terminal.")
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="One column per class, too.")] = False,
) -> None:
    """Predict the class of new images."""
    from rte.predictor import Predictor, open_images

    predictor = Predictor.load(run)
    predictor.write_csv(open_images(images, predictor.task.channels), out, probabilities=probabilities)
    if out:
        _console().print(f"Predictions are in {out}.", highlight=False)


@app.command("list")
def list_names(
    what: Annotated[str, typer.Argument(help="methods, data, nets, presets, noise or all.")] = "all",
) -> None:
    """Show what there is: methods, datasets, networks, presets, kinds of noise."""
    from rich.table import Table

    from rte.report.catalogue import catalogue

    for title, rows in catalogue(what).items():
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        for name, summary in rows.items():
            table.add_row(f"  [bold]{name}[/]", summary)
        _console().print(table)


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="cifar10 or cifar100.")],
    to: Annotated[Path, typer.Option("--to", help="The folder to put it in; point --data-dir or RTE_DATA there.")],
) -> None:
    """Download a dataset and check it against its published checksum."""
    from rte.data.get import fetch

    console = _console()
    fetch(name, to, say=lambda text: console.print(text, highlight=False))


def _config(
    data: str,
    method: str | None,
    preset: str | None,
    noise: str | None,
    net: str | None,
    epochs: int | None,
    seed: int | None,
    settings: list[str] | None,
) -> RunConfig:
    from rte.config import parse_data, resolve
    from rte.noise.config import parse_noise

    options: dict[str, Any] = {"data": parse_data(data)}
    options |= {"seed": seed} if seed is not None else {}
    options |= {"noise": parse_noise(noise)} if noise is not None else {}
    options |= {"net": {"name": net}} if net is not None else {}
    options |= {"train": {"epochs": epochs}} if epochs is not None else {}
    options |= {"method": {"name": method}} if method is not None else {}
    return resolve(preset or ("digits" if data == "digits" else "default"), options, settings or ())


def run_name(config: RunConfig, method: str | None = None) -> str:
    """data-method-noise-seed: what a run folder is called unless --out says otherwise."""
    noise = (
        config.noise.name if config.noise.name in ("none", "labels") else f"{config.noise.name}-{config.noise.ratio:g}"
    )
    return f"{config.data_name}-{method or config.method_name}-{noise}-s{config.seed}"


def _train(config: RunConfig, folder: Path, data_dir: Path | None, bars: Bars | None = None) -> dict[str, Any]:
    from rte.report.progress import Bars
    from rte.run import start

    if bars is None:
        with Bars(_console()) as own:
            return _train(config, folder, data_dir, own)
    observer = bars.run(config.method_name)
    return _interruptible(lambda: start(config, folder, data_dir=data_dir, observer=observer), folder)


def _interruptible(train: Callable[[], dict[str, Any]], folder: Path) -> dict[str, Any]:
    from rte.train.trainer import Interrupted

    try:
        return train()
    except Interrupted as stop:
        print(f"rte: stopped by {stop}; the state is saved, go on with `rte resume {folder}`.", file=sys.stderr)
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
