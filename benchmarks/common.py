"""What the benchmarks that train share: runs that are skipped when they are done, and how long runs may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from rte.config import RunConfig
from rte.errors import CheckpointError, UserError
from rte.files import read_json
from rte.run.budget import Meter, metered, most, suitable
from rte.run.build import Prepared, load_dataset, prepare, settled
from rte.run.folder import read_config
from rte.run.start import resume, start
from rte.train.distributed import World
from rte.train.trainer import Interrupted

Lengths: TypeAlias = dict[str, dict[str, int]]
"""Steps by the name of a run and by minutes."""


def plainly(main: Callable[[], None]) -> None:
    """Run a benchmark: a user's mistake and a stop are one sentence, not a traceback."""
    try:
        main()
    except Interrupted as stop:
        raise SystemExit(f"stopped by {stop}; the same command goes on from here.") from None
    except UserError as error:
        raise SystemExit(str(error)) from None


def trained(folder: Path, config: RunConfig, data_dir: Path | None = None) -> dict[str, Any]:
    """The result of a run: read if it is there, continued if it was begun, else made."""
    if not folder.exists():
        return start(config, folder, data_dir=data_dir)
    if read_config(folder).digest != settled(config, World()).digest:
        raise CheckpointError(f"{folder} holds a run with other settings; choose another folder.")
    done = folder / "result.json"
    result: dict[str, Any] = read_json(done) if done.exists() else resume(folder, data_dir=data_dir)
    return result


def prepared(config: RunConfig, data_dir: Path | None) -> Prepared:
    return prepare(config, load_dataset(config, data_dir))


def meters(
    configs: dict[str, RunConfig], data_dir: Path | None, rounds: int = 7
) -> Iterator[tuple[str, RunConfig, Meter]]:
    """A meter for each run, by turns, some rounds of them; in each round everything is timed anew."""
    made = {name: metered(prepared(config, data_dir))(config.net.name) for name, config in configs.items()}
    for _ in range(rounds):
        for name, meter in made.items():
            meter.forget()
            yield name, configs[name], meter


def networks(config: RunConfig, minutes: list[float], data_dir: Path | None) -> dict[str, str]:
    """The network that --budget takes for each time."""
    ready = prepared(config, data_dir)
    meter = metered(ready)

    def network(seconds: float) -> str:
        return suitable(ready, lambda name: meter(name).epochs(seconds))

    return {f"{m:g}": network(60 * m) for m in minutes}


def step_costs(configs: dict[str, RunConfig], data_dir: Path | None) -> dict[str, float]:
    """Median seconds of a step of each run, averaged over its schedule."""
    times: dict[str, list[float]] = {name: [] for name in configs}
    for name, config, meter in meters(configs, data_dir):
        times[name].append(meter.step(config.train.epochs * meter.per_epoch))
    return {name: median(values) for name, values in times.items()}


def lengths(configs: dict[str, RunConfig], minutes: list[float], data_dir: Path | None) -> Lengths:
    """How many steps of each run fit into each time: medians."""
    found: dict[str, list[list[int]]] = {name: [] for name in configs}
    for name, _, meter in meters(configs, data_dir):
        found[name].append([most(meter.seconds, 60 * m) for m in minutes])
    return {
        name: {f"{m:g}": int(median(column)) for m, column in zip(minutes, zip(*rows, strict=True), strict=True)}
        for name, rows in found.items()
    }
