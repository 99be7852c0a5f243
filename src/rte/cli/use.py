"""`rte evaluate` and `predict`: what a finished run is used for."""

from __future__ import annotations

import sys
from typing import Any

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


@app.command()
def evaluate(
    run: opt.Run,
    data_dir: opt.DataDir = None,
    which: opt.Which = None,
    json_file: opt.JsonFile = None,
    corruptions: opt.Corruptions = False,
    official: opt.Official = None,
    overwrite: opt.Overwrite = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Score a trained run on its test set: top-1, top-5, NLL, ECE; teacher and student."""
    from rte.errors import DataError
    from rte.files import refuse_output, write_json
    from rte.report.page.material import CORRUPTIONS
    from rte.report.tables import corruption_errors, scores
    from rte.run.folder import reopen

    if json_file is not None:
        refuse_output(json_file, "--json", overwrite=overwrite)
    if official is not None and not official.is_dir():
        raise DataError(f"--official {official} is no folder; give the one that CIFAR-10-C was unpacked to.")
    method, examiner = reopen(run, data_dir=data_dir, which=which, trust_code=trust_code)
    if not examiner.scores:
        raise DataError(
            f"{examiner.dataset.name} has no test split and {run} held no labels out, so there is nothing to score; "
            "add test data, or train with --set train.holdout=0.1."
        )
    result: dict[str, Any] = {**examiner(method), "memorisation": examiner.memorisation(method)}
    console = make_console()
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
    if json_file is not None:
        write_json(json_file, result)
    if corruptions or official:
        write_json(run / CORRUPTIONS, {**result["corruptions"], "official": official is not None})


@app.command()
def predict(
    run: opt.Run,
    images: opt.Images,
    out: opt.Predictions = None,
    top: opt.Top = 1,
    probabilities: opt.Probabilities = False,
    overwrite: opt.Overwrite = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Predict the class of new images. What cannot be read is named at the end, and the exit code is then 1."""
    import typer

    from rte.files import refuse_output
    from rte.report.predictions import refuse_form, write
    from rte.run.predictions import Stream, predictions
    from rte.run.predictor import Predictor

    if out is not None:
        refuse_output(out, "--out", overwrite=overwrite)
        refuse_form(out)
    predictor = Predictor.load(run, trust_code=trust_code)
    blocks = predictions(predictor, images, sys.stdin)
    done = write(blocks, predictor.spec.classes, out, top=top, shares=probabilities)
    if out is not None:
        make_console().print(f"{done:,} predictions are in {out}.", highlight=False)
    unread = blocks.unread if isinstance(blocks, Stream) else []
    for text in unread:
        print(f"rte: {text}", file=sys.stderr)
    if unread:
        print(f"rte: {len(unread):,} files could not be read; {done:,} are predicted.", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def export(
    run: opt.Run,
    form: opt.Form = "onnx",
    out: opt.ExportOut = None,
    overwrite: opt.Overwrite = False,
    data_dir: opt.DataDir = None,
    trust_code: opt.TrustCode = False,
) -> None:
    """Write the trained model as one file that needs no rte, with a model card beside it."""
    from rte.errors import ConfigError, did_you_mean
    from rte.files import refuse_folder, refuse_output
    from rte.run.export import FILES
    from rte.run.export import export as write

    if form not in FILES:
        raise ConfigError(f"--format {form}: {did_you_mean(form, FILES)}")
    folder = out or run / "export"
    if folder.exists():
        for name in (FILES[form], "README.md"):
            refuse_output(folder / name, "--out", overwrite=overwrite or (name == "README.md" and out is None))
    else:
        refuse_folder(folder, "--out")
    made = write(run, folder, form, data_dir=data_dir, trust_code=trust_code)  # type: ignore[arg-type]
    make_console().print(
        f"{made['file']} answers as the run does, within {made['difference']:.1g} on {made['examples']} {made['on']}; "
        f"the model card is {folder / 'README.md'}.",
        highlight=False,
    )
