"""Food-101N (Lee 2018): 310,009 photographs from the web in the 101 classes of Food-101, about 20 % wrongly labelled.

Tested on the test part of Food-101 (Bossard 2014). The images of verified_val.tsv, whose labels people have checked,
are kept out of training, so that they can measure how well wrong labels are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

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

SUMMARY = "Food-101N, web photographs, 101 classes, about 305,000 images, tested on Food-101's 25,250 test images"
HEADER = "class_name"
NOISY = Collection(
    title="Food-101N",
    name="food101n",
    get="download Food-101N_release.zip from https://kuanghuei.github.io/Food-101N and unpack it in the data folder",
    folders=("Food-101N_release", "food101n/Food-101N_release", "."),
    mark="meta/imagelist.tsv",
)
CLEAN = Collection(
    title="Food-101, whose test part Food-101N is tested on,",
    name="food101n",
    get="download https://data.vision.ee.ethz.ch/cvl/food-101.tar.gz and unpack it in the data folder",
    folders=("food-101", "food101n/food-101", "."),
    mark="meta/test.txt",
)


class Config(PhotoConfig):
    """How the photographs are read."""


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """Food-101N with its labels as given, the true ones are not known, and the test part of Food-101."""
    home = data_folder(NOISY, data_dir)
    noisy, clean = locate(NOISY, home), locate(CLEAN, home)
    classes = class_names(noisy / "meta" / "classes.txt")
    train = training(noisy, classes)
    test = testing(clean, classes)
    return Dataset("food101n", classes, photographs(*train, cfg), photographs(*test, cfg))


def body(file: Path) -> list[tuple[int, str]]:
    """The lines of a list of Food-101N with their numbers in the file, without its header line."""
    lines = list(enumerate(read_lines(file, NOISY), start=1))
    return lines[1:] if lines[0][1].startswith(HEADER) else lines


def class_names(file: Path) -> tuple[str, ...]:
    """The classes, numbered in sorted order: neither this file's order nor that of Food-101's can be relied on."""
    return tuple(sorted({name for _, name in body(file)}))


def training(root: Path, classes: Sequence[str]) -> tuple[list[Path], Labels]:
    """All listed images except those of verified_val.tsv.

    An image is known by its file name alone: one is filed under different classes in two of the lists.
    """
    kept_out = {line.split("\t")[0].rpartition("/")[2] for _, line in body(root / "meta" / "verified_val.tsv")}
    file = root / "meta" / "imagelist.tsv"
    keys = [(n, line) for n, line in body(file) if line.rpartition("/")[2] not in kept_out]
    return images_of(keys, file, root, classes, NOISY)


def testing(root: Path, classes: Sequence[str]) -> tuple[list[Path], Labels]:
    """The test images of Food-101, whose list leaves out the ending .jpg."""
    file = root / "meta" / "test.txt"
    keys = [(n, f"{line.removesuffix('.jpg')}.jpg") for n, line in enumerate(read_lines(file, CLEAN), start=1)]
    return images_of(keys, file, root, classes, CLEAN)


def images_of(
    keys: Sequence[tuple[int, str]], file: Path, root: Path, classes: Sequence[str], collection: Collection
) -> tuple[list[Path], Labels]:
    """Images root/images/<class>/<name> and labels (N,) of numbered lines "<class>/<name>", at least one per class."""
    number = {name: k for k, name in enumerate(classes)}
    y = np.zeros(len(keys), dtype=np.int64)
    for row, (n, key) in enumerate(keys):
        name, slash, _ = key.partition("/")
        if not slash or name not in number:
            raise DataError(
                f"line {n} of {file} is '{key}', which does not begin with one of the {len(classes)} classes of "
                "meta/classes.txt and a slash; correct or replace the file."
            )
        y[row] = number[name]
    lacking = np.flatnonzero(np.bincount(y, minlength=len(classes)) == 0)
    if len(lacking):
        raise DataError(
            f"{file} lists no image of class {classes[lacking[0]]}; it was cut short or is of another set, so to get "
            f"it again, {collection.remedy}"
        )
    folder = root / "images"
    paths = [folder / key for _, key in keys]
    check_present(paths, file, collection)
    return paths, y
