"""One sub-folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rte.data.folder import Config, load
from rte.errors import DataError


def image(path: Path, value: int = 0, size: tuple[int, int] = (4, 3), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, 0, 0)).save(path)


def tree(root: Path, per_class: int = 3, classes: tuple[str, ...] = ("cat", "ant", "bee")) -> Path:
    for k, name in enumerate(classes):
        for n in range(per_class):
            image(root / name / f"{n}.png", value=10 * k + n)
    return root


def test_sub_folders_are_classes_sorted_by_name(tmp_path: Path) -> None:
    data = load(Config(path=str(tree(tmp_path / "animals"))), None)
    assert data.name == "animals"
    assert data.classes == ("ant", "bee", "cat")
    assert data.test is None
    assert data.y_true is None
    assert data.train.y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    pixels = np.asarray(data.train.images.fetch(np.arange(9)))
    assert pixels.shape == (9, 3, 4, 3)
    assert pixels[:, 0, 0, 0].tolist() == [10, 11, 12, 20, 21, 22, 0, 1, 2]
    assert data.train.images.label(0) == str(tmp_path / "animals" / "ant" / "0.png")


@pytest.mark.parametrize("name", ["test", "val"])
def test_train_and_test_folders(tmp_path: Path, name: str) -> None:
    tree(tmp_path / "train")
    tree(tmp_path / name, per_class=1)
    data = load(Config(path=str(tmp_path)), None)
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (9, 3)
    assert data.test.y.tolist() == [0, 1, 2]
    assert data.test.images.label(2) == str(tmp_path / name / "cat" / "0.png")


def test_test_comes_before_val(tmp_path: Path) -> None:
    tree(tmp_path / "train")
    tree(tmp_path / "test", per_class=1)
    tree(tmp_path / "val", per_class=2)
    data = load(Config(path=str(tmp_path)), None)
    assert data.test is not None
    assert len(data.test) == 3


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    data = load(Config(path=str(tree(tmp_path, classes=("train", "plane")))), None)
    assert data.classes == ("plane", "train")


def test_hidden_and_other_files_are_passed_over(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / "cat" / "notes.txt").touch()
    (tmp_path / "cat" / ".thumb.png").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / "readme.md").touch()
    image(tmp_path / "cat" / "more" / "9.PNG")
    data = load(Config(path=str(tmp_path)), None)
    assert np.bincount(data.train.y).tolist() == [3, 3, 4]


def test_test_share(tmp_path: Path) -> None:
    data = load(Config(path=str(tree(tmp_path, per_class=4)), test_share=0.25), None)
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (9, 3)
    names = {split.images.label(i) for split in (data.train, data.test) for i in range(len(split))}
    assert len(names) == 12


def test_settings_reach_the_images(tmp_path: Path) -> None:
    for name in ("a", "b"):
        image(tmp_path / name / "0.png", size=(20, 10))
    images = load(Config(path=str(tmp_path), channels=1, shorter=5), None).train.images
    assert (images.channels, images.size) == (1, (5, 10))


def test_grey_training_and_colour_test_images_agree_on_channels(tmp_path: Path) -> None:
    for name in ("a", "b"):
        image(tmp_path / "train" / name / "0.png", mode="L")
        image(tmp_path / "test" / name / "0.png")
    data = load(Config(path=str(tmp_path)), None)
    assert data.test is not None
    assert data.train.images.channels == data.test.images.channels == 3


def test_found_in_the_data_folder(tmp_path: Path) -> None:
    tree(tmp_path / "animals")
    assert len(load(Config(path="animals"), tmp_path).train) == 9


def test_absent_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist; give the path of a folder"):
        load(Config(path=str(tmp_path / "nowhere")), None)


def test_empty_class_is_named_with_what_was_ignored(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "a.doc").touch()
    with pytest.raises(DataError, match=r"dog holds no image \(1 other files were ignored\); put images there \(\.jpg"):
        load(Config(path=str(tmp_path)), None)


@pytest.mark.parametrize(("classes", "count"), [((), "0 class folders"), (("one",), "1 class folder;")])
def test_too_few_classes(tmp_path: Path, classes: tuple[str, ...], count: str) -> None:
    tree(tmp_path, classes=classes)
    with pytest.raises(DataError, match=rf"has {count}.* sub-folder of its own, at least two"):
        load(Config(path=str(tmp_path)), None)


def test_test_class_that_training_lacks(tmp_path: Path) -> None:
    tree(tmp_path / "train")
    tree(tmp_path / "test", classes=("cat", "cow"))
    with pytest.raises(
        DataError, match=r"test/cow is no class of the training images \(ant, bee, cat\); remove or rename"
    ):
        load(Config(path=str(tmp_path)), None)


def test_test_folder_may_lack_classes_but_not_all(tmp_path: Path) -> None:
    tree(tmp_path / "train")
    tree(tmp_path / "test", classes=("cat",))
    data = load(Config(path=str(tmp_path)), None)
    assert data.test is not None
    assert data.test.y.tolist() == [2, 2, 2]
    for file in (tmp_path / "test" / "cat").iterdir():
        file.unlink()
    (tmp_path / "test" / "cat").rmdir()
    with pytest.raises(DataError, match=r"test holds no images"):
        load(Config(path=str(tmp_path)), None)


def test_damaged_image_is_named_when_it_is_needed(tmp_path: Path) -> None:
    tree(tmp_path)
    bad = tmp_path / "bee" / "1.png"
    bad.write_bytes(bad.read_bytes()[:50])
    data = load(Config(path=str(tmp_path)), None)
    with pytest.raises(DataError, match=r"bee/1\.png cannot be read"):
        data.train.images.fetch(np.arange(9))


@pytest.mark.parametrize("name", ["valid", "validation"])
def test_other_names_of_a_test_folder(tmp_path: Path, name: str) -> None:
    tree(tmp_path / "train")
    tree(tmp_path / name, per_class=1)
    data = load(Config(path=str(tmp_path)), None)
    assert data.test is not None
    assert len(data.test) == 3


def test_numbered_classes_are_sorted_by_value(tmp_path: Path) -> None:
    names = tuple(str(k) for k in range(11))
    assert load(Config(path=str(tree(tmp_path / "a", 1, names))), None).classes == names
    mixed = (*names, "other")
    assert load(Config(path=str(tree(tmp_path / "b", 1, mixed))), None).classes == tuple(sorted(mixed))
