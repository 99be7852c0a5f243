"""Food-101N in miniature, tested on Food-101 in miniature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photos import contents, names, photo, text, train

from rte.data.food101n import Config, load
from rte.errors import DataError

NOISY, CLEAN = "Food-101N_release", "food-101"
KEYS = {
    "filet_mignon/f1.jpg": 10,
    "cheesecake/c1.jpg": 20,
    "cheese_plate/p1.jpg": 30,
    "cheesecake/c2.jpg": 21,
    "filet_mignon/f2.jpg": 11,
    "cheese_plate/p2.jpg": 31,
}
LISTS = {
    "meta/classes.txt": ["class_name", "cheesecake", "cheese_plate", "filet_mignon"],
    "meta/imagelist.tsv": ["class_name/key", *KEYS],
    # f1 is listed as another class here, as one image is in the real lists
    "meta/verified_val.tsv": ["class_name/key\tverification_label", "cheesecake/c2.jpg\t1", "cheesecake/f1.jpg\t0"],
}
TEST = ["filet_mignon/9", "cheesecake/7", "cheesecake/8", "cheese_plate/6"]


def tree(folder: Path) -> Path:
    """Both collections; the classes are listed in an order that is not the sorted one."""
    for file, lines in LISTS.items():
        text(folder / NOISY / file, *lines)
    for key, value in KEYS.items():
        photo(folder / NOISY / "images" / key, value)
    text(folder / CLEAN / "meta" / "test.txt", *TEST)
    for key in TEST:
        photo(folder / CLEAN / "images" / f"{key}.jpg", 100 + int(key[-1]))
    return folder


@pytest.mark.parametrize("place", ["food101n", "."])
def test_classes_are_numbered_in_sorted_order_and_verified_images_kept_out(tmp_path: Path, place: str) -> None:
    tree(tmp_path / place)
    data = load(Config(), tmp_path)
    assert data.name == "food101n"
    assert data.classes == ("cheese_plate", "cheesecake", "filet_mignon")
    assert data.y_true is None
    assert contents(data.train) == [(20, 1), (30, 0), (11, 2), (31, 0)]
    assert contents(data.test) == [(109, 2), (107, 1), (108, 1), (106, 0)]


def test_an_image_filed_under_two_classes_is_kept_out_under_both(tmp_path: Path) -> None:
    tree(tmp_path)
    assert "f1.jpg" not in names(load(Config(), tmp_path).train)


def test_lists_without_a_header_line_lose_nothing(tmp_path: Path) -> None:
    tree(tmp_path)
    for file, lines in LISTS.items():
        text(tmp_path / NOISY / file, *lines[1:])
    data = load(Config(), tmp_path)
    assert data.classes == ("cheese_plate", "cheesecake", "filet_mignon")
    assert contents(data.train) == [(20, 1), (30, 0), (11, 2), (31, 0)]


def test_the_data_folder_may_be_the_release_itself(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / CLEAN).rename(tmp_path / NOISY / CLEAN)
    assert len(load(Config(), tmp_path / NOISY).train) == 4


def test_settings_reach_the_images(tmp_path: Path) -> None:
    data = load(Config(shorter=3), tree(tmp_path))
    assert data.test is not None
    for split in (data.train, data.test):
        assert (split.images.size, split.images.channels) == (None, 3)
        assert split.images.fetch(np.array([0]))[0].shape == (3, 4, 3)


def test_the_preset_trains_on_it(tmp_path: Path) -> None:
    result = train("food101n", tree(tmp_path))
    assert (result["noise"]["name"], result["noise"]["measured"]) == ("none", None)
    assert 0 <= result["test"]["top1"] <= result["test"]["top5"] == 1


def complaint(tmp_path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load(Config(), tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_absent_altogether(tmp_path: Path) -> None:
    message = complaint(tmp_path)
    for part in (
        str(tmp_path / NOISY / "meta" / "imagelist.tsv"),
        "Food-101N_release.zip",
        "docs/datasets/food101n.md",
    ):
        assert part in message
    with pytest.raises(DataError, match=r"Food-101N needs a data folder"):
        load(Config(), None)


def test_no_food_101(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / CLEAN).rename(tmp_path / "elsewhere")
    message = complaint(tmp_path)
    for part in ("Food-101, whose test part", str(tmp_path / CLEAN / "meta" / "test.txt"), "food-101.tar.gz"):
        assert part in message


@pytest.mark.parametrize("file", ["meta/classes.txt", "meta/verified_val.tsv"])
def test_a_missing_list_is_named(tmp_path: Path, file: str) -> None:
    tree(tmp_path)
    (tmp_path / NOISY / file).unlink()
    message = complaint(tmp_path)
    assert f"{tmp_path / NOISY / file} of Food-101N is missing" in message
    assert "Food-101N_release.zip" in message


@pytest.mark.parametrize(
    ("gone", "file"),
    [
        (f"{NOISY}/images/cheese_plate/p2.jpg", f"{NOISY}/meta/imagelist.tsv"),
        (f"{CLEAN}/images/cheesecake/8.jpg", f"{CLEAN}/meta/test.txt"),
    ],
)
def test_a_missing_image_is_named_with_its_list(tmp_path: Path, gone: str, file: str) -> None:
    tree(tmp_path)
    (tmp_path / gone).unlink()
    assert f"1 of the 4 images that {tmp_path / file} lists are missing, the first is {tmp_path / gone}" in complaint(
        tmp_path
    )


@pytest.mark.parametrize("line", ["pizza/a.jpg", "cheesecake", "a.jpg"])
def test_a_line_of_no_class(tmp_path: Path, line: str) -> None:
    tree(tmp_path)
    text(tmp_path / NOISY / "meta" / "imagelist.tsv", "class_name/key", next(iter(KEYS)), line)
    message = complaint(tmp_path)
    assert f"line 3 of {tmp_path / NOISY / 'meta' / 'imagelist.tsv'} is '{line}'" in message
    assert "one of the 3 classes" in message


def test_a_class_that_is_not_tested(tmp_path: Path) -> None:
    tree(tmp_path)
    text(tmp_path / CLEAN / "meta" / "test.txt", *TEST[:3])
    assert f"{tmp_path / CLEAN / 'meta' / 'test.txt'} lists no image of class cheese_plate" in complaint(tmp_path)
