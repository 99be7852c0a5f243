"""ImageNet of ILSVRC 2012: 1,281,167 training and 50,000 validation photographs in 1,000 classes.

A class is known by its WordNet id, such as n01440764, and classes are numbered in sorted order of those ids. The
devkit numbers them otherwise (its class 1 is n02119789), so its numbers are never used without its own table meta.mat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rte.data._collections import (
    Collection,
    PhotoConfig,
    data_folder,
    image_names,
    listing,
    locate,
    photographs,
    read_lines,
)
from rte.data.types import Dataset, Labels
from rte.errors import DataError
from rte.settings import setting

SUMMARY = "ImageNet (ILSVRC 2012), photographs, 1,000 classes, 1,281,167 + 50,000 images, class folders or devkit"
FOLDERS = ("imagenet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC", "imagenet/ILSVRC/Data/CLS-LOC", ".")
GET = (
    "register at https://image-net.org, download ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar and unpack them "
    "as train/<wnid>/ and val/"
)
TRAINING = Collection("ImageNet", "imagenet", GET, FOLDERS, "train")
VALIDATION = Collection("ImageNet's validation set", "imagenet", GET, FOLDERS, "val")

DEVKIT = "ILSVRC2012_devkit_t12/data"
TRUTH, META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
SOLUTION, MAPPING = "LOC_val_solution.csv", "LOC_synset_mapping.txt"
BESIDE = (".", DEVKIT, "devkit/data", "meta")
WNID = re.compile(r"n\d{8}")
NUMBERED = re.compile(r"ILSVRC2012_val_(\d{8})\.\w+")


class Config(PhotoConfig):
    """How many classes there are, and how the photographs are read."""

    classes: int = setting(1000, "how many class folders there must be, so that an incomplete copy is noticed", ge=2)


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """ImageNet with its own labels as the true ones; classes are the folders of train/, sorted by WordNet id."""
    home = data_folder(TRAINING, data_dir)
    root = locate(TRAINING, home)
    wnids = class_folders(root / "train", cfg.classes)
    paths, y = in_class_folders(root / "train", wnids)
    train = photographs(paths, y, cfg)
    if not (root / "val").is_dir():
        raise DataError(f"{root / 'val'} of ImageNet is missing; to get it, {VALIDATION.remedy}")
    test = photographs(*validation(root, home, wnids), cfg)
    return Dataset("imagenet", named(wnids, words(root, home)), train, test, y_true=y.copy())


def class_folders(folder: Path, classes: int) -> tuple[str, ...]:
    """The WordNet ids that have a folder, sorted; any other number of them than `classes` is an error."""
    children = listing(folder)
    wnids = tuple(name for name, is_folder in children if is_folder and WNID.fullmatch(name))
    if len(wnids) != classes:
        packed = sum(name.endswith(".tar") and not is_folder for name, is_folder in children)
        unpack = f" and {packed:,} .tar files; unpack each into a folder of its name," if packed else "; add the rest,"
        raise DataError(
            f"{folder} has {len(wnids):,} class folders (named like n01440764) where {classes:,} were expected"
            f"{unpack} or set data.classes to the number you mean to use."
        )
    return wnids


def in_class_folders(folder: Path, wnids: Sequence[str]) -> tuple[list[Path], Labels]:
    """The images of folder/<wnid>/ for the given ids, and their labels: positions in `wnids`."""
    paths: list[Path] = []
    counts = []
    for wnid in wnids:
        place = folder / wnid
        names = image_names(place) if place.is_dir() else []
        if not names:
            raise DataError(f"{place} is missing or holds no image; to get ImageNet again, {TRAINING.remedy}")
        paths += [place / name for name in names]
        counts.append(len(names))
    return paths, np.repeat(np.arange(len(wnids)), counts).astype(np.int64)


def validation(root: Path, home: Path, wnids: Sequence[str]) -> tuple[list[Path], Labels]:
    """The validation images of the given classes, and their labels: positions in `wnids`.

    They lie in val/<wnid>/, or directly in val/ with their labels in files in `root` or above, up to `home`.
    """
    folder = root / "val"
    if any(is_folder and WNID.fullmatch(name) for name, is_folder in listing(folder)):
        return in_class_folders(folder, wnids)
    names = image_names(folder)
    if not names:
        raise DataError(f"{folder} holds neither class folders nor images; to get them, {VALIDATION.remedy}")
    number = {wnid: k for k, wnid in enumerate(wnids)}
    chosen = [
        (folder / name, number[wnid])
        for name, wnid in zip(names, labels_of(folder, names, root, home), strict=True)
        if wnid in number
    ]
    present = {k for _, k in chosen}
    if len(present) < len(wnids):
        lacking = next(wnid for wnid in wnids if number[wnid] not in present)
        raise DataError(f"{folder} holds no image of class {lacking}; to get ImageNet again, {VALIDATION.remedy}")
    return [path for path, _ in chosen], np.array([k for _, k in chosen], dtype=np.int64)


def labels_of(folder: Path, names: Sequence[str], root: Path, home: Path) -> list[str]:
    """The WordNet id of each validation image, from the devkit or from the list of the Kaggle release."""
    truth, meta, solution = (beside(file, root, home) for file in (TRUTH, META, SOLUTION))
    if truth is not None and meta is not None:
        return by_number(folder, names, truth, meta)
    if solution is not None:
        return by_name(folder, names, solution)
    if truth is not None:
        raise DataError(
            f"{truth.with_name(META)} is missing, and only it tells which class a number in {truth.name} stands for "
            f"(the numbers do not follow the order of {MAPPING}); unpack ILSVRC2012_devkit_t12.tar.gz in {root}."
        )
    raise DataError(
        f"the images of {folder} are not sorted into class folders, so their labels are needed: expected "
        f"{root / DEVKIT / TRUTH} with {META} beside it (unpack ILSVRC2012_devkit_t12.tar.gz in {root}), or "
        f"{root / SOLUTION} of the Kaggle release; or move each image to {folder / '<wnid>'}."
    )


def by_number(folder: Path, names: Sequence[str], truth: Path, meta: Path) -> list[str]:
    """Labels from the devkit: line n of the ground truth is the devkit's number of the class of image n."""
    synsets = read_meta(meta)
    lines = read_lines(truth, VALIDATION)
    if len(lines) != len(names):
        raise DataError(
            f"{folder} holds {len(names):,} images but {truth} has {len(lines):,} lines; unpack "
            "ILSVRC2012_img_val.tar again, or sort the images you have into class folders."
        )
    out = []
    for name in names:
        match = NUMBERED.fullmatch(name)
        n = int(match[1]) if match else 0
        if not 1 <= n <= len(lines):
            raise DataError(
                f"{folder / name} is not named like ILSVRC2012_val_00000001.JPEG with a number up to {len(lines):,}, "
                f"so {truth.name} says nothing about it; give it its name back or remove it."
            )
        label = lines[n - 1]
        if not label.isdecimal() or int(label) not in synsets:
            raise DataError(f"line {n} of {truth} is '{label}', which is no class of {meta}; unpack the devkit again.")
        out.append(synsets[int(label)][0])
    return out


def by_name(folder: Path, names: Sequence[str], solution: Path) -> list[str]:
    """Labels from the Kaggle release: lines such as "ILSVRC2012_val_00000001,n01751748 111 108 412 387"."""
    known = {}
    for line in read_lines(solution, VALIDATION):
        image, _, boxes = line.partition(",")
        known[image] = boxes.split(" ", 1)[0]
    for name in names:
        wnid = known.get(Path(name).stem, "")
        if not WNID.fullmatch(wnid):
            raise DataError(f"{solution} has no class for {folder / name}; remove the image, or copy the list again.")
    return [known[Path(name).stem] for name in names]


def beside(file: str, root: Path, home: Path) -> Path | None:
    """A file that comes with the images: in their folder or above it up to the data folder, or in a devkit there."""
    above = [folder for folder in (root, *root.parents) if folder == home or home in folder.parents]
    places = (folder / inner / file for folder in above for inner in BESIDE)
    return next((place for place in places if place.is_file()), None)


def read_meta(file: Path) -> dict[int, tuple[str, str]]:
    """The devkit's table: its number of each class -> (WordNet id, names); groups of classes are left out."""
    from scipy.io import loadmat

    try:
        synsets = np.atleast_1d(loadmat(file, variable_names=["synsets"], squeeze_me=True)["synsets"])
        columns = [synsets[field] for field in ("ILSVRC2012_ID", "WNID", "words", "num_children")]
        return {int(n): (str(wnid), str(name)) for n, wnid, name, below in zip(*columns, strict=True) if not int(below)}
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can make SciPy's reader raise nearly anything
        raise DataError(f"{file} is not the devkit's table of classes ({error}); unpack the devkit again.") from error


def words(root: Path, home: Path) -> dict[str, str]:
    """WordNet id -> names, from whichever file has them; empty if none does."""
    mapping, meta = beside(MAPPING, root, home), beside(META, root, home)
    if mapping is not None:
        lines = (line.partition(" ") for line in read_lines(mapping, TRAINING))
        return {wnid: names for wnid, _, names in lines}
    return dict(read_meta(meta).values()) if meta is not None else {}


def named(wnids: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Class names such as "n01440764 tench"; the id stays, since two classes are called crane and two maillot."""
    return tuple(f"{wnid} {names.get(wnid, '').split(',')[0]}".strip() for wnid in wnids)
