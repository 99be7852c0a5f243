"""ImageNet in miniature, in each of the layouts it is kept in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from photos import contents, names, photo, text, train
from scipy.io import savemat

from rte.data import imagenet
from rte.data.imagenet import Config, load
from rte.errors import DataError

WNIDS = ("n01440764", "n01443537", "n02119789")
WORDS = ("tench, Tinca tinca", "goldfish, Carassius auratus", "kit fox, Vulpes macrotis")
DEVKIT_NUMBER = {"n02119789": 1, "n01440764": 2, "n01443537": 3}
"""The devkit numbers classes in another order than that of their ids."""
VAL = ("n01443537", "n02119789", "n01440764", "n01443537")
"""The class of each validation image."""
THREE = Config(classes=3)


def training(root: Path) -> None:
    for k, wnid in enumerate(WNIDS):
        for n in range(2):
            photo(root / "train" / wnid / f"{wnid}_{n}.JPEG", 10 * k + n)


def validation(root: Path, *, folders: bool = False) -> None:
    for n, wnid in enumerate(VAL, start=1):
        inner = wnid if folders else "."
        photo(root / "val" / inner / f"ILSVRC2012_val_{n:08d}.JPEG", 100 + n)


def meta(file: Path, number: dict[str, int] = DEVKIT_NUMBER) -> None:
    """The devkit's table: three classes and, as in the real one, groups of them."""
    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("gloss", "O"), ("num_children", "O")]
    rows: list[tuple[Any, ...]] = [(number[wnid], wnid, WORDS[WNIDS.index(wnid)], "", 0) for wnid in number]
    rows += [(1001, "n00001740", "entity", "", 2), (1002, "n00001930", "physical entity", "", 1)]
    file.parent.mkdir(parents=True, exist_ok=True)
    savemat(file, {"synsets": np.array(rows, dtype=fields).reshape(-1, 1)})


def devkit(root: Path, lines: Sequence[str] | None = None) -> Path:
    data = root / "ILSVRC2012_devkit_t12" / "data"
    text(data / imagenet.TRUTH, *(lines or [str(DEVKIT_NUMBER[wnid]) for wnid in VAL]))
    meta(data / imagenet.META)
    return data


def kaggle(root: Path) -> None:
    boxes = (f"ILSVRC2012_val_{n:08d},{wnid} 1 2 3 4 {wnid} 5 6 7 8 " for n, wnid in enumerate(VAL, start=1))
    text(root / imagenet.SOLUTION, "ImageId,PredictionString", *reversed(list(boxes)))
    text(root / imagenet.MAPPING, *(f"{wnid} {words}" for wnid, words in zip(WNIDS, WORDS, strict=True)))


TRAIN_CONTENTS = [(0, 0), (1, 0), (10, 1), (11, 1), (20, 2), (21, 2)]
VAL_CONTENTS = [(101, 1), (102, 2), (103, 0), (104, 1)]


def test_class_folders(tmp_path: Path) -> None:
    training(tmp_path / "imagenet")
    validation(tmp_path / "imagenet", folders=True)
    data = load(THREE, tmp_path)
    assert data.name == "imagenet"
    assert data.classes == WNIDS
    assert contents(data.train) == TRAIN_CONTENTS
    assert contents(data.test) == [(103, 0), (101, 1), (104, 1), (102, 2)]
    assert data.y_true is not None
    assert data.y_true.tolist() == data.train.y.tolist()
    assert data.y_true is not data.train.y


@pytest.mark.parametrize("place", imagenet.FOLDERS)
def test_every_place(tmp_path: Path, place: str) -> None:
    training(tmp_path / place)
    validation(tmp_path / place, folders=True)
    assert len(load(THREE, tmp_path).train) == 6


@pytest.mark.parametrize("place", ["imagenet", "."])
def test_flat_validation_images_with_the_devkit_in_the_folder_or_above(tmp_path: Path, place: str) -> None:
    training(tmp_path / "imagenet")
    validation(tmp_path / "imagenet")
    devkit(tmp_path / place)
    data = load(THREE, tmp_path)
    assert contents(data.test) == VAL_CONTENTS
    assert data.classes == ("n01440764 tench", "n01443537 goldfish", "n02119789 kit fox")


def test_labels_belong_to_the_number_in_the_file_name(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path)
    devkit(tmp_path)
    (tmp_path / "val" / "ILSVRC2012_val_00000002.JPEG").rename(tmp_path / "val" / "ILSVRC2012_val_00000002.jpeg")
    assert names(load(THREE, tmp_path).test)[1].endswith("2.jpeg")
    assert contents(load(THREE, tmp_path).test) == VAL_CONTENTS


def test_the_kaggle_release(tmp_path: Path) -> None:
    root = tmp_path / "ILSVRC" / "Data" / "CLS-LOC"
    training(root)
    validation(root)
    kaggle(tmp_path)
    data = load(THREE, tmp_path)
    assert contents(data.test) == VAL_CONTENTS
    assert data.classes == ("n01440764 tench", "n01443537 goldfish", "n02119789 kit fox")


def test_validation_images_of_other_classes_are_left_out(tmp_path: Path) -> None:
    validation(tmp_path)
    devkit(tmp_path)
    paths, y = imagenet.validation(tmp_path, tmp_path, ("n02119789", "n01440764"))
    assert [path.name[-6] for path in paths] == ["2", "3"]
    assert y.tolist() == [0, 1]


def test_other_files_in_a_class_folder_are_passed_over(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path, folders=True)
    text(tmp_path / "train" / WNIDS[0] / "notes.txt")
    text(tmp_path / "train" / WNIDS[0] / "._n01440764_0.JPEG")
    (tmp_path / "train" / "lost+found").mkdir()
    assert contents(load(THREE, tmp_path).train) == TRAIN_CONTENTS


def test_images_are_not_opened_before_they_are_asked_for(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path, folders=True)
    damaged = tmp_path / "train" / WNIDS[0] / f"{WNIDS[0]}_0.JPEG"
    damaged.write_bytes(b"no image")
    images = load(THREE, tmp_path).train.images
    assert (images.size, images.channels) == (None, 3)
    with pytest.raises(DataError, match=re.escape(str(damaged))):
        images.fetch(np.array([0]))


def test_settings_reach_the_images(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path, folders=True)
    data = load(Config(classes=3, shorter=3), tmp_path)
    assert data.test is not None
    for split in (data.train, data.test):
        assert split.images.fetch(np.array([0]))[0].shape == (3, 4, 3)
    assert Config().shorter == 512


def test_the_preset_trains_on_it(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path)
    devkit(tmp_path)
    result = train("imagenet", tmp_path, data={"classes": 3})
    assert result["noise"]["measured"] == pytest.approx(2 / 6)  # 0.4 of six labels, rounded
    assert 0 <= result["test"]["top1"] <= result["test"]["top5"] == 1


def complaint(tmp_path: Path, cfg: Config = THREE) -> str:
    with pytest.raises(DataError) as caught:
        load(cfg, tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_absent_altogether(tmp_path: Path) -> None:
    message = complaint(tmp_path)
    for part in (str(tmp_path / "imagenet" / "train"), str(tmp_path / "ILSVRC2012" / "train"), "ILSVRC2012_img_train"):
        assert part in message
    assert "docs/datasets/imagenet.md" in message
    with pytest.raises(DataError, match=r"ImageNet needs a data folder.*--data-dir.*https://image-net\.org"):
        load(THREE, None)


def test_another_number_of_class_folders_is_an_incomplete_copy(tmp_path: Path) -> None:
    training(tmp_path)
    message = complaint(tmp_path, Config())
    for part in (str(tmp_path / "train"), "3 class folders", "1,000 were expected", "data.classes"):
        assert part in message


def test_classes_still_packed(tmp_path: Path) -> None:
    for wnid in WNIDS:
        text(tmp_path / "imagenet" / "train" / f"{wnid}.tar")
    assert "0 class folders" in complaint(tmp_path)
    assert "3 .tar files; unpack each into a folder of its name" in complaint(tmp_path)


def test_an_empty_class(tmp_path: Path) -> None:
    training(tmp_path)
    for file in (tmp_path / "train" / WNIDS[1]).iterdir():
        file.unlink()
    assert f"{tmp_path / 'train' / WNIDS[1]} is missing or holds no image" in complaint(tmp_path)


def test_no_validation_folder(tmp_path: Path) -> None:
    training(tmp_path / "imagenet")
    assert f"{tmp_path / 'imagenet' / 'val'} of ImageNet is missing" in complaint(tmp_path)
    (tmp_path / "imagenet" / "val").mkdir()
    assert "val holds neither class folders nor images" in complaint(tmp_path)


def test_a_class_without_validation_images(tmp_path: Path) -> None:
    training(tmp_path)
    photo(tmp_path / "val" / WNIDS[0] / "a.JPEG")
    assert f"{tmp_path / 'val' / WNIDS[1]} is missing or holds no image" in complaint(tmp_path)


def test_flat_without_labels_names_both_files_that_would_do(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path)
    message = complaint(tmp_path)
    for part in (f"{imagenet.DEVKIT}/{imagenet.TRUTH}", "meta.mat", "ILSVRC2012_devkit_t12.tar.gz", imagenet.SOLUTION):
        assert part in message


def test_the_ground_truth_alone_does_not_tell_the_classes(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path)
    kaggle(tmp_path)
    (tmp_path / imagenet.SOLUTION).unlink()
    data = devkit(tmp_path)
    (data / imagenet.META).unlink()
    message = complaint(tmp_path)
    assert str(data / imagenet.META) in message
    assert "do not follow the order of LOC_synset_mapping.txt" in message


def test_the_kaggle_list_serves_where_the_devkit_is_incomplete(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path)
    (devkit(tmp_path) / imagenet.META).unlink()
    kaggle(tmp_path)
    assert contents(load(THREE, tmp_path).test) == VAL_CONTENTS


def test_a_damaged_table_of_classes(tmp_path: Path) -> None:
    training(tmp_path)
    validation(tmp_path)
    file = devkit(tmp_path) / imagenet.META
    file.write_bytes(b"MATLAB" * 40)
    assert f"{file} is not the devkit's table of classes" in complaint(tmp_path)
    savemat(file, {"other": 1})
    assert f"{file} is not the devkit's table of classes" in complaint(tmp_path)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["1", "2", "3"], "holds 4 images but .*has 3 lines"),
        (["3", "1", "x", "3"], "line 3 of .* is 'x', which is no class of .*meta.mat"),
        (["3", "1001", "2", "3"], "line 2 of .* is '1001', which is no class of .*meta.mat"),
        (["3", "3", "2", "3"], "holds no image of class n02119789"),
    ],
)
def test_a_ground_truth_that_does_not_fit(tmp_path: Path, lines: list[str], said: str) -> None:
    training(tmp_path)
    validation(tmp_path)
    devkit(tmp_path, lines)
    assert re.search(said, complaint(tmp_path))


@pytest.mark.parametrize("name", ["holiday.jpg", "ILSVRC2012_val_00000005.JPEG", "ILSVRC2012_val_00000000.JPEG"])
def test_a_validation_image_of_another_name(tmp_path: Path, name: str) -> None:
    training(tmp_path)
    validation(tmp_path)
    devkit(tmp_path)
    (tmp_path / "val" / "ILSVRC2012_val_00000001.JPEG").rename(tmp_path / "val" / name)
    message = complaint(tmp_path)
    assert f"{tmp_path / 'val' / name} is not named like ILSVRC2012_val_00000001.JPEG" in message
    (tmp_path / "ILSVRC2012_devkit_t12" / "data" / imagenet.TRUTH).unlink()
    kaggle(tmp_path)
    assert f"has no class for {tmp_path / 'val' / name}" in complaint(tmp_path)
