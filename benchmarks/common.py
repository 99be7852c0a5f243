"""What the benchmarks that train share: runs that are skipped when they are done, and the cost of a step."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from rte import run
from rte.budget import measure
from rte.config import RunConfig
from rte.errors import CheckpointError
from rte.files import read_json


def trained(folder: Path, config: RunConfig, data_dir: Path | None = None) -> dict[str, Any]:
    """The result of a run: read if it is there, continued if it was begun, else made."""
    if not folder.exists():
        return run.start(config, folder, data_dir=data_dir)
    if run.read_config(folder).digest != config.digest:
        raise CheckpointError(f"{folder} holds a run with other settings; choose another folder.")
    done = folder / "result.json"
    result: dict[str, Any] = read_json(done) if done.exists() else run.resume(folder, data_dir=data_dir)
    return result


def step_costs(configs: dict[str, RunConfig], data_dir: Path | None, rounds: int = 3) -> dict[str, float]:
    """Median seconds of a step of each run, averaged over its schedule, measured by turns."""
    times: dict[str, list[float]] = {name: [] for name in configs}
    prepared = {name: run.prepare(config, run.load_dataset(config, data_dir)) for name, config in configs.items()}
    for _ in range(rounds):
        for name, one in prepared.items():
            trainer, _ = run.make_trainer(one, save=lambda name, state: None)
            times[name].append(measure(trainer).step)
    return {name: median(values) for name, values in times.items()}
