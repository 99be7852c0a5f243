"""WebVision 1.0 (Li 2017): images found on the web by the names of ImageNet's classes, labelled by the query.

The usual benchmark takes the Google part of the first 50 classes, 65,944 images whose labels are wrong at an unknown
rate, and tests on ImageNet's validation images of the same classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from rte.data import imagenet
from rte.data._collections import (
    Collection,
    PhotoConfig,
    check_present,
    data_folder,
    locate,
    photographs,
    read_lines,
)
from rte.data.types import Dataset, Labels
from rte.errors import DataError
from rte.settings import setting

SUMMARY = "WebVision 1.0, web photographs, first 50 of 1,000 classes, 65,944 images (Google), tested on ImageNet"
TRAIN, VAL, SYNSETS = "info/train_filelist_google.txt", "info/val_filelist.txt", "info/synsets.txt"
WEBVISION = Collection(
    title="WebVision",
    name="webvision",
    get="download google_resized_256.tar, val_images_256.tar and info.tar of WebVision 1.0 from "
    "https://data.vision.ee.ethz.ch/cvl/webvision/download.html and unpack them into one folder",
    folders=("webvision", "."),
    mark=TRAIN,
)
FIRST_50 = (
    "n01440764", "n01443537", "n01484850", "n01491361", "n01494475", "n01496331", "n01498041", "n01514668",
    "n01514859", "n01518878", "n01530575", "n01531178", "n01532829", "n01534433", "n01537544", "n01558993",
    "n01560419", "n01580077", "n01582220", "n01592084", "n01601694", "n01608432", "n01614925", "n01616318",
    "n01622779", "n01629819", "n01630670", "n01631663", "n01632458", "n01632777", "n01641577", "n01644373",
    "n01644900", "n01664065", "n01665541", "n01667114", "n01667778", "n01669191", "n01675722", "n01677366",
    "n01682714", "n01685808", "n01687978", "n01688243", "n01689811", "n01692333", "n01693334", "n01694178",
    "n01695060", "n01697457",
)  # fmt: skip


class Config(PhotoConfig):
    """Which classes, what they are tested on, and how the photographs are read."""

    classes: int = setting(50, "use the first so many of the 1,000 classes", ge=2, le=1000)
    test: Literal["imagenet", "webvision"] = setting(
        "imagenet", "test on the validation images of ImageNet (as the paper does) or of WebVision"
    )


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """WebVision's Google images with their labels as given; the true ones are not known."""
    home = data_folder(WEBVISION, data_dir)
    root = locate(WEBVISION, home)
    wnids, names = synsets(root / SYNSETS, cfg.classes)
    train = photographs(*listed(root / TRAIN, root, wnids), cfg)
    if cfg.test == "imagenet":
        test = photographs(*imagenet.validation(locate(imagenet.VALIDATION, home), home, wnids), cfg)
    else:
        test = photographs(*listed(root / VAL, root / "val_images_256", wnids), cfg)
    return Dataset("webvision", names, train, test)


def synsets(file: Path, classes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """WordNet ids and class names of the first classes; line k, from 0, is class k: "n01440764 tench, Tinca tinca"."""
    lines = read_lines(file, WEBVISION)
    if len(lines) < classes:
        raise DataError(
            f"{file} names {len(lines)} classes but data.classes = {classes}; set data.classes={len(lines)} or less, "
            f"or to get the whole file, {WEBVISION.remedy}"
        )
    entries = [line.partition(" ") for line in lines[:classes]]
    wnids = tuple(wnid for wnid, _, _ in entries)
    for k, (found, expected) in enumerate(zip(wnids, FIRST_50, strict=False)):
        if found != expected:
            raise DataError(
                f"line {k + 1} of {file} is class {found}, but class {k} of WebVision 1.0 is {expected}; "
                f"the file is of another release, so to get the right one, {WEBVISION.remedy}"
            )
    return wnids, imagenet.named(wnids, {wnid: names for wnid, _, names in entries})


def listed(file: Path, folder: Path, wnids: Sequence[str]) -> tuple[list[Path], Labels]:
    """The images of a list that are of the first len(wnids) classes, in its order; lines are "<path> <class>".

    An image may be listed more than once, for it may answer several queries: every line counts.
    """
    paths, y = [], []
    for n, line in enumerate(read_lines(file, WEBVISION), start=1):
        path, _, label = line.rpartition(" ")
        if not path or not label.isdecimal():
            raise DataError(
                f"line {n} of {file} is '{line}', not '<path> <class number>'; correct or replace the file."
            )
        if int(label) < len(wnids):
            paths.append(folder / path)
            y.append(int(label))
    lacking = sorted(set(range(len(wnids))) - set(y))
    if lacking:
        raise DataError(
            f"{file} lists no image of class {lacking[0]} ({wnids[lacking[0]]}); it was cut short, so to get it "
            f"again, {WEBVISION.remedy}"
        )
    check_present(paths, file, WEBVISION)
    return paths, np.array(y, dtype=np.int64)
