"""The command `rte` and its groups; every file beside this one adds commands to them."""

from __future__ import annotations

import os
import time

import typer

STARTED = time.monotonic()
"""When the program began: a budget counts from here."""

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
"""Turns for which torch's threads spin at a barrier before they sleep; read when torch is loaded. With the usual
300,000 a waiting thread takes the time of a core that another one needs: beside one busy program a step took 3 to 10
times as long, with this 3 to 4 times. On an idle machine it makes no difference."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(help="Check your data, fetch datasets.", no_args_is_help=True)
app.add_typer(data_app, name="data")
noise_app = typer.Typer(help="Make noise shaped like the mistakes of a classifier.", no_args_is_help=True)
app.add_typer(noise_app, name="noise")
