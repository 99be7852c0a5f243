"""WebVision in miniature, tested on ImageNet or on its own validation images."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from photos import contents, names, photo, text, train

from rte.data.webvision import FIRST_50, SYNSETS, TRAIN, VAL, Config, load
from rte.errors import DataError

THREE = Config(classes=3)
LINES = ["google/q0002/b.jpg 1", "google/q0001/a.jpg 0", "google/q0004/d.jpg 3", "google/q0003/c.jpg 2"]
"""Four classes, of which three are used; the images are 10 times their class."""


def tree(root: Path) -> None:
    names = ("tench, Tinca tinca", "goldfish, Carassius auratus", "great white shark, white shark", "tiger shark")
    text(root / SYNSETS, *(f"{wnid} {words}" for wnid, words in zip(FIRST_50, names, strict=False)))
    text(root / TRAIN, *LINES, "google/q0003/a.jpg 2")
    for line in LINES[:2] + LINES[3:]:
        path, label = line.split()
        photo(root / path, 10 * int(label))
    photo(root / "google" / "q0003" / "a.jpg", 25)
    text(root / VAL, "val000002.jpg 2", "val000001.jpg 0", "val000003.jpg 1", "val000004.jpg 3")
    for n in (1, 2, 3):
        photo(root / "val_images_256" / f"val00000{n}.jpg", 100 + n)


def imagenet(root: Path) -> None:
    for k, wnid in enumerate(FIRST_50[:5]):
        photo(root / "val" / wnid / f"ILSVRC2012_val_{k:08d}.JPEG", 200 + k)


@pytest.mark.parametrize("place", ["webvision", "."])
def test_trained_on_the_first_classes_and_tested_on_imagenet(tmp_path: Path, place: str) -> None:
    tree(tmp_path / place)
    imagenet(tmp_path / "imagenet")
    data = load(THREE, tmp_path)
    assert data.name == "webvision"
    assert data.classes == ("n01440764 tench", "n01443537 goldfish", "n01484850 great white shark")
    assert data.y_true is None
    assert contents(data.train) == [(10, 1), (0, 0), (20, 2), (25, 2)]
    assert contents(data.test) == [(200, 0), (201, 1), (202, 2)]


def test_tested_on_its_own_validation_images(tmp_path: Path) -> None:
    tree(tmp_path / "webvision")
    data = load(Config(classes=3, test="webvision"), tmp_path)
    assert contents(data.test) == [(102, 2), (101, 0), (103, 1)]


def test_a_line_counts_each_time(tmp_path: Path) -> None:
    tree(tmp_path)
    imagenet(tmp_path)
    text(tmp_path / TRAIN, *LINES, "google/q0001/a.jpg 0", "google/q0001/a.jpg 1")
    data = load(THREE, tmp_path)
    assert names(data.train) == ["b.jpg", "a.jpg", "c.jpg", "a.jpg", "a.jpg"]
    assert data.train.y.tolist() == [1, 0, 2, 0, 1]


def test_paths_may_hold_spaces(tmp_path: Path) -> None:
    tree(tmp_path)
    imagenet(tmp_path)
    text(tmp_path / TRAIN, *LINES, "google/q0001/a picture.jpg 0")
    photo(tmp_path / "google" / "q0001" / "a picture.jpg", 5)
    assert contents(load(THREE, tmp_path).train)[-1] == (5, 0)


def test_the_first_fifty_are_in_the_order_of_their_ids() -> None:
    assert Config().classes == len(FIRST_50) == len(set(FIRST_50)) == 50
    assert list(FIRST_50) == sorted(FIRST_50)
    assert (FIRST_50[0], FIRST_50[25], FIRST_50[49]) == ("n01440764", "n01629819", "n01697457")


def test_settings_reach_the_images(tmp_path: Path) -> None:
    tree(tmp_path)
    imagenet(tmp_path)
    data = load(Config(classes=3, shorter=3), tmp_path)
    assert data.test is not None
    for split in (data.train, data.test):
        assert split.images.fetch(np.array([0]))[0].shape == (3, 4, 3)


def test_the_preset_trains_on_it(tmp_path: Path) -> None:
    tree(tmp_path / "webvision")
    imagenet(tmp_path / "imagenet")
    result = train("webvision", tmp_path, data={"classes": 3})
    assert (result["noise"]["name"], result["noise"]["measured"]) == ("none", None)
    assert 0 <= result["test"]["top1"] <= result["test"]["top5"] == 1


def complaint(tmp_path: Path, cfg: Config = THREE) -> str:
    with pytest.raises(DataError) as caught:
        load(cfg, tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_absent_altogether(tmp_path: Path) -> None:
    message = complaint(tmp_path)
    for part in (str(tmp_path / "webvision" / TRAIN), "google_resized_256.tar", "docs/datasets/webvision.md"):
        assert part in message
    with pytest.raises(DataError, match=r"WebVision needs a data folder"):
        load(THREE, None)


def test_no_imagenet(tmp_path: Path) -> None:
    tree(tmp_path / "webvision")
    message = complaint(tmp_path)
    for part in (str(tmp_path / "imagenet" / "val"), "ILSVRC2012_img_val.tar", "docs/datasets/imagenet.md"):
        assert part in message


def test_imagenet_lacks_one_of_the_classes(tmp_path: Path) -> None:
    tree(tmp_path / "webvision")
    photo(tmp_path / "imagenet" / "val" / FIRST_50[0] / "a.JPEG")
    assert f"{tmp_path / 'imagenet' / 'val' / FIRST_50[1]} is missing or holds no image" in complaint(tmp_path)


@pytest.mark.parametrize("file", [SYNSETS, VAL])
def test_a_missing_file_of_the_info_folder_is_named(tmp_path: Path, file: str) -> None:
    tree(tmp_path / "webvision")
    (tmp_path / "webvision" / file).unlink()
    message = complaint(tmp_path, Config(classes=3, test="webvision"))
    assert f"{tmp_path / 'webvision' / file} of WebVision is missing" in message
    assert "info.tar" in message


def test_missing_images_are_counted(tmp_path: Path) -> None:
    tree(tmp_path)
    gone = tmp_path / "google" / "q0002" / "b.jpg"
    gone.unlink()
    message = complaint(tmp_path)
    assert f"1 of the 4 images that {tmp_path / TRAIN} lists are missing, the first is {gone}" in message


def test_synsets_of_another_release(tmp_path: Path) -> None:
    tree(tmp_path)
    text(tmp_path / SYNSETS, *(f"{wnid} x" for wnid in (FIRST_50[0], FIRST_50[2], FIRST_50[1])))
    assert re.search(r"line 2 of .*synsets\.txt is class n01484850, but class 1 .* n01443537", complaint(tmp_path))


def test_fewer_synsets_than_classes(tmp_path: Path) -> None:
    tree(tmp_path)
    assert re.search(
        r"synsets\.txt names 4 classes but data\.classes = 50; set data\.classes=4", complaint(tmp_path, Config())
    )


@pytest.mark.parametrize("line", ["google/q0001/a.jpg", "google/q0001/a.jpg tench", "google/q0001/a.jpg -1"])
def test_a_line_that_is_no_path_and_class(tmp_path: Path, line: str) -> None:
    tree(tmp_path)
    text(tmp_path / TRAIN, LINES[0], line)
    assert f"line 2 of {tmp_path / TRAIN} is '{line}', not '<path> <class number>'" in complaint(tmp_path)


def test_a_class_without_a_line(tmp_path: Path) -> None:
    tree(tmp_path)
    text(tmp_path / TRAIN, *LINES[:3])
    assert f"{tmp_path / TRAIN} lists no image of class 2 (n01484850)" in complaint(tmp_path)
