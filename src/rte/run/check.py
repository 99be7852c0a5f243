"""The data that a run's settings name, looked at before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from rte import registry
from rte.config import RunConfig, merge, validate
from rte.data._useless import LeftOut
from rte.data.check.findings import Findings
from rte.data.check.findings import check as check_data
from rte.data.types import Dataset
from rte.run.audit import data_root


def check(
    config: RunConfig, data_dir: Path | None = None, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Findings, list[str]]:
    """What is worth knowing of the data, and a sentence on each kind of example that cannot be used.

    progress(done, total) is told how many more examples have been read.
    """
    dataset, left_out = opened(config, data_dir)
    total = len(dataset.train) + (0 if dataset.test is None else len(dataset.test))
    found = check_data(dataset, data_root(config, data_dir), lambda done: progress(done, total))
    return found, left_out


def opened(config: RunConfig, data_dir: Path | None) -> tuple[Dataset, list[str]]:
    """The dataset without what cannot be used of it, and the sentences on that."""
    model = registry.dataset(config.data_name)
    cfg = config.data
    if "skip_bad" in model.Config.model_fields:
        cfg = validate(model.Config, merge(cfg.model_dump(), {"skip_bad": True}), "data")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", LeftOut)
        dataset: Dataset = model.load(cfg, data_dir)
    return dataset, [str(one.message) for one in said if issubclass(one.category, LeftOut)]
