"""The command `rte` and its groups; every file beside this one adds commands to them."""

from __future__ import annotations

import time

import typer

STARTED = time.monotonic()
"""When the program began: a budget counts from here."""

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
