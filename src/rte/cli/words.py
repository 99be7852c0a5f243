"""What several commands say and do alike."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rte.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from rte.cli.advice import Advisor
    from rte.config import RunConfig


def make_config(
    data: str,
    method: str | None,
    preset: str | None,
    noise: str | None,
    net: str | None,
    epochs: int | None,
    seed: int | None,
    settings: list[str] | None,
    schedule: Path | None = None,
    *,
    init: str | None = None,
    frozen: bool = False,
    trust_code: bool = False,
    about_data: dict[str, Any] | None = None,
    advisor: Advisor | None = None,
) -> RunConfig:
    from rte.config import parse_data, resolve
    from rte.noise.config import parse_noise

    options: dict[str, Any] = {"data": parse_data(data, **(about_data or {}))}
    options |= {"seed": seed} if seed is not None else {}
    options |= {"noise": parse_noise(noise)} if noise is not None else {}
    options |= {"net": {"name": net, "wider": []}} if net is not None else {}
    if net is not None and init is not None:
        raise UserError("--net and --init each name a network; leave --net out, the weights say which it is.")
    options |= {"net": {"init": None if init == "none" else init, "wider": []}} if init is not None else {}
    if frozen:
        options["net"] = {**options.get("net", {}), "train": "frozen"}
    options |= {"train": {"epochs": epochs}} if epochs is not None else {}
    options |= {"method": {"name": method}} if method is not None else {}
    if advisor is not None and schedule is None:
        preset, options = advisor(preset, options, settings or ())
    if preset is None:
        preset = {"digits": "digits", "vectors": "vectors", "tabular": "vectors", "text": "vectors"}.get(
            options["data"]["name"], "default"
        )
    if schedule is None:
        return resolve(preset, options, settings or (), trust_code=trust_code)
    from rte.search.schedule import read_schedule, resolve_with

    found = read_schedule(schedule)
    config = resolve_with(found, preset, options, settings or (), trust_code=trust_code)
    for note in found.notes():
        print(f"rte: {note}", file=sys.stderr)
    return config


def announce(config: RunConfig) -> None:
    """Say which weights a run starts from; files that cannot be such are refused here, before anything is read."""
    if config.net.init is None or os.environ.get("RANK", "0") != "0":
        return
    from rte.nets.weights import read

    print(f"rte: {read(config.net.init).sentence()}", file=sys.stderr)


def method_names(text: str) -> list[str]:
    """The names in "ce,gce,rte", each once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError("--methods names no method; give some, such as ce,gce,rte, or all, or paper.")
    spelt = [name.replace("-", "_") for name in names]
    for k, name in enumerate(spelt):
        if name in spelt[:k]:
            raise UserError(f"--methods names {name} twice; name each method once.")
    return names


def run_name(config: RunConfig, method: str | None = None) -> str:
    """data-method-noise-seed: what a run folder is called unless --out says otherwise."""
    noise = (
        config.noise.name if config.noise.name in ("none", "labels") else f"{config.noise.name}-{config.noise.ratio:g}"
    )
    return f"{config.data_name}-{method or config.method_label}-{noise}-s{config.seed}"


def read_budget(budget: str | None, epochs: int | None) -> float | None:
    if budget is None:
        return None
    if epochs is not None:
        raise UserError("--budget and --epochs each set the length of the run; give one of them.")
    from rte.run.budget import parse_budget

    return parse_budget(budget)


def interruptible(train: Callable[[], dict[str, Any]], folder: Path, command: str = "resume") -> dict[str, Any]:
    from rte.train.trainer import Interrupted

    try:
        return train()
    except Interrupted as stop:
        print(f"rte: stopped by {stop}; the state is saved, go on with `rte {command} {folder}`.", file=sys.stderr)
        raise typer.Exit(130) from None


def finish(result: dict[str, Any], folder: Path) -> None:
    from rte.report.tables import heading, percent, scores

    console = make_console()
    console.print(f"{result['method']} on {heading(result)}", highlight=False)
    if result["noise"]["warning"]:
        console.print(f"Note: {result['noise']['warning']}", highlight=False)
    if any(isinstance(value, dict) and "nll" in value for value in result.values()):
        console.print(scores(result))
    else:
        console.print("Nothing was scored: there is no test split, and nothing was held out.", highlight=False)
    if "implied" in result:
        console.print(result["implied"]["sentence"], highlight=False)
    memory = result.get("memorisation") or {}
    if memory.get("memorised") is not None:
        learnt, seen_through = percent(memory["memorised"]), percent(memory["recovered"])
        console.print(
            f"Of the wrongly labelled training images {learnt} % were memorised and {seen_through} % are predicted as "
            "what they really are.",
            highlight=False,
        )
    console.print(f"Trained for {result['train_seconds']:.0f} s; the run folder is {folder}", highlight=False)


def make_console() -> Console:
    from rich.console import Console

    return Console()
