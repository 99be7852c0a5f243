"""What is found in a dataset, on data with one of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photos import photo
from PIL import Image
from test_data_check_near import picture

from rte.config import resolve
from rte.data.arrays import from_arrays
from rte.data.check.findings import alike, check
from rte.data.vectors import from_vectors
from rte.report.check import problems, screen
from rte.run.check import check as check_run


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of different pictures, and among them everything that can be wrong."""
    root = tmp_path / 'a "b", \N{WINKING FACE}'
    for part, first, n in (("train", 0, 6), ("test", 50, 2)):
        for k, name in enumerate(("cat", "Cat")):
            for i in range(n):
                photo(root / part / name / f"{i}.png")
                picture(first + 10 * k + i).save(root / part / name / f"{i}.png")
    cat, other, test = root / "train" / "cat", root / "train" / "Cat", root / "test"
    (other / "same.png").write_bytes((cat / "0.png").read_bytes())
    picture(1, 120).save(other / "near.jpg", quality=80)
    picture(2).point(lambda v: min(255, v + 9)).save(cat / "near.webp")
    (test / "cat" / "leak.png").write_bytes((cat / "3.png").read_bytes())
    picture(4, 80).save(test / "cat" / "leak.jpg", quality=80)
    (cat / "cut.jpg").write_bytes((other / "near.jpg").read_bytes()[:900])
    (cat / "text.jpg").write_text("no image")
    (cat / "empty.jpg").touch()
    for k, value in enumerate((0, 1)):
        Image.new("RGB", (30, 30), (value, 0, 0)).save(cat / f"black{k}.png")
    return root


def test_one_of_each(photos: Path) -> None:
    seen: list[tuple[int, int]] = []
    config = resolve(None, {"data": {"name": "folder", "path": str(photos)}})
    found, left_out = check_run(config, None, lambda done, total: seen.append((done, total)))
    tree = found.tree()
    assert (left_out, sum(done for done, _ in seen), seen[0][1]) == ([], 26, 26)
    assert (tree["train"], tree["test"]) == (20, 6)
    assert tree["classes"] == {"Cat": {"train": 8, "test": 2}, "cat": {"train": 12, "test": 4}}
    assert set(tree["unreadable"]) == {"train/cat/cut.jpg", "train/cat/empty.jpg", "train/cat/text.jpg"}
    assert tree["alike"] == [["Cat", "cat"]]
    assert tree["sizes"] == {"smallest": [30, 30], "median": [96, 96], "largest": [120, 120]}

    def named(how: str, kind: str) -> list[list[str]]:
        return [sorted(one["id"] for one in group) for group in tree["copies"][how][kind]]

    assert named("exact", "contradicting") == [["train/Cat/same.png", "train/cat/0.png"]]
    assert named("exact", "train_and_test") == [["test/cat/leak.png", "train/cat/3.png"]]
    assert named("near", "contradicting") == [["train/Cat/near.jpg", "train/cat/1.png"]]
    assert named("near", "train_and_test") == [["test/cat/leak.jpg", "train/cat/4.png"]]
    assert sorted(named("near", "groups"))[-1] == ["train/cat/2.png", "train/cat/near.webp"]
    assert len(named("near", "groups")) == 3, "black images are not alike for being black"
    text = "\n".join(problems(tree))
    for part in (
        "3 files cannot be read",
        "'Cat' and 'cat' differ only by case",
        "1 group of equal images with differ",
    ):
        assert part in text
    assert screen(tree, left_out, ["net: swift"])


def test_images_in_memory_and_vectors() -> None:
    x = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    x[1] = x[0]
    tree = check(from_arrays(x, list("aabbbbbc"), x[:2], list("ab"))).tree()
    assert tree["seen_once"] == ["c"]
    assert tree["imbalance"] == 5
    groups = tree["copies"]["exact"]
    assert [[one["id"] for one in group] for group in groups["contradicting"]] == [["0", "1", "0", "1"]]
    assert len(groups["train_and_test"]) == 1
    v = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    v[:, 2], v[3, 0], v[5] = 1, np.nan, v[4]
    tree = check(from_vectors(v, [0, 0, 0, 1, 1, 0])).tree()
    assert (tree["kind"], tree["missing"], tree["constant"]) == ("vectors", 1, 1)
    assert [one["id"] for one in tree["copies"]["exact"]["contradicting"][0]] == ["4", "5"]
    assert len(list(problems(tree))) == 3


def test_names_of_classes_that_are_hardly_two() -> None:
    assert alike(["dog", "Dog ", "hot dog", "hot_dog", "cat", "7", "07"]) == [["dog", "Dog "], ["hot dog", "hot_dog"]]
