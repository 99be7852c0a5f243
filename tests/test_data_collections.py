"""Finding a collection, reading its lists, checking its images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from photos import photo, text

from rte.data._collections import (
    Collection,
    PhotoConfig,
    check_present,
    data_folder,
    image_names,
    locate,
    photographs,
    read_lines,
)
from rte.errors import DataError

BIRDS = Collection("Birds", "birds", "download birds.tar and unpack it", ("birds", "Birds-1.0", "."), "list.txt")


def test_no_data_folder_says_how_to_name_one_and_how_to_get_the_files() -> None:
    with pytest.raises(
        DataError,
        match=r"Birds needs a data folder; pass --data-dir DIR or set RTE_DATA.*birds\.tar.*docs/datasets/birds\.md",
    ):
        data_folder(BIRDS, None)


def test_absent_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist.*--data-dir.*RTE_DATA.*birds\.tar"):
        data_folder(BIRDS, tmp_path / "nowhere")
    assert data_folder(BIRDS, tmp_path) == tmp_path


@pytest.mark.parametrize("place", BIRDS.folders)
def test_a_collection_is_found_in_each_of_its_places(tmp_path: Path, place: str) -> None:
    text(tmp_path / place / "list.txt", "a")
    assert locate(BIRDS, tmp_path).resolve() == (tmp_path / place).resolve()


def test_an_absent_collection_says_which_file_was_expected_in_every_place(tmp_path: Path) -> None:
    (tmp_path / "birds").mkdir()
    with pytest.raises(DataError) as caught:
        locate(BIRDS, tmp_path)
    for place in ("birds/list.txt", "Birds-1.0/list.txt", "list.txt"):
        assert str(tmp_path / place) in str(caught.value)
    assert "download birds.tar and unpack it (docs/datasets/birds.md)" in str(caught.value)


def test_lines_of_any_system(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbfa 0\r\nb 1\r\n\r\n")
    assert read_lines(tmp_path / "list.txt", BIRDS) == ["a 0", "b 1"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "list.txt of Birds is missing"), (b"\n", "list.txt is empty"), (b"\xff\xfe", "list.txt cannot be read")],
)
def test_a_list_that_cannot_be_used(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        read_lines(tmp_path / "list.txt", BIRDS)
    assert "birds.tar" in str(caught.value)


def test_image_names_are_sorted_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b.JPEG", "a.jpg", ".hidden.jpg", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.jpg").mkdir()
    assert image_names(tmp_path) == ["a.jpg", "b.JPEG"]
    with pytest.raises(DataError, match=r"nowhere cannot be listed"):
        image_names(tmp_path / "nowhere")


def test_listed_images_that_are_missing_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    here = tmp_path / "a.jpg"
    check_present([here, here], tmp_path / "list.txt", BIRDS)
    with pytest.raises(DataError, match=r"2 of the 3 images that .*list\.txt lists are missing.*gone.b\.jpg; "):
        check_present([here, tmp_path / "gone" / "b.jpg", tmp_path / "c.jpg"], tmp_path / "list.txt", BIRDS)


def test_photographs_are_reduced_while_decoding_and_not_looked_at_before(tmp_path: Path) -> None:
    paths = [photo(tmp_path / "wide.jpg", 7, (40, 20)), photo(tmp_path / "small.jpg", 9, (4, 6)), tmp_path / "none.jpg"]
    split = photographs(paths, np.zeros(3, dtype=np.int64), PhotoConfig(shorter=10))
    assert (split.images.size, split.images.channels) == (None, 3)
    assert [image.shape for image in split.images.fetch(np.arange(2))] == [(10, 20, 3), (6, 4, 3)]
