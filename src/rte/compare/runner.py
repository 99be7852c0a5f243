"""A comparison in its folder: every run once, resumed where it was stopped, and the numbers of all at the end.

compare.json     what is compared             METHOD-sSEED/    a run folder each
comparison.json  the numbers                  comparison.md, comparison.png   the table and the figure
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rte.compare.plan import Comparison, Run, best, label
from rte.compare.summary import Result, Row, summarise
from rte.config import RunConfig
from rte.errors import CheckpointError, TrainingError, Unsuitable, UntrustedCode, UserError
from rte.files import read_json, write_json
from rte.run.start import refuse_taken, start_or_resume
from rte.train.distributed import World
from rte.train.trainer import Observer

FILE = "compare.json"
"""Where this file is, a folder is one of a comparison."""


def begin(comparison: Comparison, folder: Path, data_dir: Path | None) -> None:
    """Make the folder and write down what will be compared; of several processes the first does."""
    world = World.join()
    if world.first and not world.claimed(folder):
        _found(comparison, folder, data_dir)
        world.claim(folder)
    world.wait()


def _found(comparison: Comparison, folder: Path, data_dir: Path | None) -> None:
    refuse_taken(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder} ({error.strerror}); choose another with --out.") from None
    where = None if data_dir is None else str(data_dir.resolve())
    write_json(folder / FILE, {**comparison.tree(), "data_dir": where})


def reopen(folder: Path, data_dir: Path | None, *, trust_code: bool = False) -> tuple[Comparison, Path | None]:
    """What a folder compares, and where its data is looked for."""
    tree = read_json(folder / FILE)
    try:
        where = tree.pop("data_dir")
        comparison = Comparison.from_tree(tree, trust_code=trust_code)
    except UntrustedCode as error:
        raise UntrustedCode(f"{folder}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise CheckpointError(f"{folder / FILE} is damaged; start the comparison anew in another folder.") from None
    return comparison, data_dir or (None if where is None else Path(where))


def train(
    comparison: Comparison,
    folder: Path,
    *,
    data_dir: Path | None,
    watch: Callable[[str], Observer],
    started: float | None = None,
    trust_code: bool = False,
) -> list[Row]:
    """Bring every run to its end; returns a row of numbers for each method. `started`: when the first budget begins.

    Trials of learning rates come first, then one seed after another: a comparison that is stopped early has whole
    tables. A run that breaks down (its loss is no longer finite) is a result too, and so is that a method can do
    nothing with the network: the others go on.
    """
    results: dict[str, Result] = {}
    net: str | None = None  # the one that the first run was given, which a budget may choose

    def bring(run: Run) -> None:
        nonlocal net, started
        config = run.config if net is None else run.config.with_net(net)
        results[run.folder] = result = _bring(
            replace(run, config=config), folder, data_dir, watch, comparison.budget, started, trust_code
        )
        started = None
        if comparison.budget is not None and "failed" not in result:
            net = net or str(result["net"])

    factors: dict[str, float | None] = {}
    for config in comparison.configs:
        trials = comparison.trials(config)
        for run in trials:
            bring(run)
        factors[label(config)] = best([(run.factor, _score(results[run.folder])) for run in trials])
    for seed in range(1, comparison.seeds):
        for config in comparison.configs:
            factor = factors[label(config)]
            if factor is not None:
                bring(comparison.run(config, factor, seed))
    rows = summarise(comparison, factors, results)
    if World.join().first:
        write_json(folder / "comparison.json", [row.tree() for row in rows])
    return rows


def _bring(
    run: Run,
    folder: Path,
    data_dir: Path | None,
    watch: Callable[[str], Observer],
    budget: float | None,
    started: float | None,
    trust_code: bool,
) -> Result:
    """One run to its end: its final numbers, or {"failed": why}."""
    path, world = folder / run.folder, World.join()
    failure = path / "failure.json"
    failed, done = world.any([world.first and failure.is_file(), world.first and (path / "result.json").is_file()])
    if failed:
        return {"failed": str(read_json(failure)["failed"])}
    if done:
        result: dict[str, Any] = read_json(path / "result.json")
        return _checked(result, run.config, path)
    try:
        observer, times = watch(run.folder), {"budget": budget, "started": started}
        return start_or_resume(run.config, path, data_dir=data_dir, observer=observer, trust_code=trust_code, **times)
    except (TrainingError, Unsuitable) as error:
        if world.first:
            path.mkdir(exist_ok=True)  # what does not suit is refused before there is a folder
            write_json(failure, {"failed": str(error)})
        return {"failed": str(error)}


def _checked(result: Result, config: RunConfig, path: Path) -> Result:
    """The numbers of a finished run, which must be the one that is compared."""
    if (result["method"], result["seed"]) != (config.method_label, config.seed):
        raise CheckpointError(f"{path} holds another run than {FILE} says; move it away, then go on.")
    return result


def _score(result: Result) -> float | None:
    """The accuracy on held-out noisy labels that rates are chosen by, if labels are held out; None for a failed run."""
    return None if "failed" in result else float(result.get("val", {}).get("last", 0.0))
