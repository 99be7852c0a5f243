"""Image files of the user's own, read once before training: at a size a little above the one that is trained on, and
without those that cannot be read.

Beside the runs, a folder `images` keeps which files cannot be read, so that the next run on them need not ask.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.config import RunConfig
from rte.data._useless import leave_out
from rte.data.files import FileImages
from rte.data.ids import whole
from rte.data.types import Dataset, Images, Split, Subset
from rte.errors import UserError
from rte.files import read_json, write_json
from rte.run.inputs import side_of
from rte.views.config import ViewConfig

CROPPED = 1.5
"""Times the side that is trained on: crops of a part of the image are enlarged no more than that."""
WHOLE = 8 / 7
"""Where no crops are drawn: what is seen is the middle seven eighths."""
CACHE = "images"


def read_once(config: RunConfig, dataset: Dataset, beside: Path | None, tell: Any = None) -> tuple[RunConfig, Dataset]:
    """The settings with the size at which images are decoded, and the dataset of images of this size.

    beside: the folder that keeps what was found out. tell(done, total) is told how many files have been read.
    """
    below, _ = whole(dataset.train.images)
    if not isinstance(below, FileImages) or not hasattr(config.data, "skip_bad"):
        return config, dataset
    config = sized(config, below)
    files = below.reduced(getattr(config.data, "shorter", None))
    splits = [dataset.train] + ([dataset.test] if dataset.test is not None else [])
    bad, skip = unreadable(files, beside, tell), bool(getattr(config.data, "skip_bad", False))
    kept = [_kept(split, bad, skip=skip) for split in splits]
    dataset = dataset.only(kept[0])
    train, *test = (
        Split(Subset(files, whole(split.images)[1][rows]), split.y[rows])
        for split, rows in zip(splits, kept, strict=True)
    )
    return config, replace(dataset, train=train, test=test[0] if test else None)


def sized(config: RunConfig, files: Images) -> RunConfig:
    """The settings with the side of the views, where it is not that of all images, and the side of decoded images."""
    assert isinstance(config.views, ViewConfig)
    side = side_of(config, files)
    if config.views.size is None and files.size != side:
        config = replace(config, views=config.views.model_copy(update={"size": side[0]}))
    if getattr(config.data, "shorter", None) is not None:
        return config
    above = WHOLE if config.net.init is not None and config.net.train == "frozen" else CROPPED
    shorter = min(side) if files.size == side else ceil(above * min(side))
    return replace(config, data=config.data.model_copy(update={"shorter": shorter}))


def unreadable(files: FileImages, beside: Path | None, tell: Any = None) -> dict[int, str]:
    """The files that cannot be read, and why; all others are then in memory, as far as there is room."""
    record = None if beside is None else beside / f"{state_of(files.paths)}.json"
    if record is not None and record.is_file():
        known = read_json(record)
        return {int(i): str(why) for i, why in known.items()}
    found = files.read_all(tell)
    if record is not None:
        try:
            record.parent.mkdir(parents=True, exist_ok=True)
            write_json(record, {str(i): why for i, why in found.items()})
        except (OSError, UserError):
            pass  # it only saves time
    return found


def state_of(paths: Sequence[str]) -> str:
    """A short name for these files as they are now: their paths, sizes and times of change."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            status = os.stat(path)
            state = f"{status.st_size} {status.st_mtime_ns}"
        except OSError:
            state = "-"
        digest.update(f"{os.path.abspath(path)}\0{state}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()[:24]


def _kept(split: Split, bad: dict[int, str], *, skip: bool) -> NDArray[np.int64]:
    """The rows of a split whose files can be read."""
    rows = whole(split.images)[1]
    wrong = np.isin(rows, np.array(sorted(bad), np.int64))
    return leave_out(wrong, "cannot be read", lambda i: bad[int(rows[i])].partition(";")[0].rstrip("."), skip=skip)
